"""The methods that the cluster algorithms are compared with, one in each file.

Exact methods run the conventional recursions on the spanning tree of all joints, with loops open, and enforce the loops
through G, or through K and Lagrange multipliers [001, §II]. Approximations lump the inertia of rotors into joints.
"""

from coupler.algorithms.baselines.approximate import with_armatures, without_rotors
from coupler.algorithms.baselines.joint_motion import joint_motion_program
from coupler.algorithms.baselines.lagrange import lagrange_program
from coupler.algorithms.baselines.projected_osim import projected_osim_program
from coupler.algorithms.baselines.projected_rnea import projected_rnea_program
from coupler.algorithms.baselines.projection import projection_program
from coupler.algorithms.baselines.stabilized import stabilized_dynamics_program, stabilized_rnea_program

__all__ = [
    "joint_motion_program",
    "lagrange_program",
    "projected_osim_program",
    "projected_rnea_program",
    "projection_program",
    "stabilized_dynamics_program",
    "stabilized_rnea_program",
    "with_armatures",
    "without_rotors",
]

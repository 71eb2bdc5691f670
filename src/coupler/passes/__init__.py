"""Passes over the clusters of a robot: what algorithms are written in, and how they become programs."""

from coupler.graph import constants, symmetric
from coupler.passes.along_joints import across_joints, armature_force, force_on_joints
from coupler.passes.body import Body, Output
from coupler.passes.climb import Climb, ClimbingBody, ClimbingCluster, CoupledClusters, velocities_of
from coupler.passes.cluster import Visit
from coupler.passes.groups import ActuatedGroups, have_full_rank, separate_actuators
from coupler.passes.loads import add_element_energy, add_loads, collect_loads
from coupler.passes.paths import PathBody, PathCluster, Paths
from coupler.passes.records import (
    ClusterRecord,
    Coordinate,
    Coordinates,
    Indexed,
    Record,
    afterwards,
    collected,
    entry,
    numbered,
    provided,
)
from coupler.passes.schedule import Place, Places, Schedule, Store
from coupler.passes.shape import ClusterShape
from coupler.passes.sweep import Sweep, tables
from coupler.passes.terms import (
    TermRecord,
    TermRow,
    cleared,
    position_of,
    row_of,
    share_limits,
    visit_actuators,
    visit_terms,
)
from coupler.passes.transmissions import (
    accelerate_transmissions,
    actuated_body,
    add_positions,
    measure_gears,
    posed_actuators,
)
from coupler.passes.tree_loops import TreeRecord, inertia_of_tree
from coupler.passes.windows import ClusterWindows

__all__ = [
    "ActuatedGroups",
    "Body",
    "Climb",
    "ClimbingBody",
    "ClimbingCluster",
    "ClusterRecord",
    "ClusterShape",
    "ClusterWindows",
    "Coordinate",
    "Coordinates",
    "CoupledClusters",
    "Indexed",
    "Output",
    "PathBody",
    "PathCluster",
    "Paths",
    "Place",
    "Places",
    "Record",
    "Schedule",
    "Store",
    "Sweep",
    "TermRecord",
    "TermRow",
    "TreeRecord",
    "Visit",
    "accelerate_transmissions",
    "across_joints",
    "actuated_body",
    "add_element_energy",
    "add_loads",
    "add_positions",
    "afterwards",
    "armature_force",
    "cleared",
    "collect_loads",
    "collected",
    "constants",
    "entry",
    "force_on_joints",
    "have_full_rank",
    "inertia_of_tree",
    "measure_gears",
    "numbered",
    "posed_actuators",
    "position_of",
    "provided",
    "row_of",
    "separate_actuators",
    "share_limits",
    "symmetric",
    "tables",
    "velocities_of",
    "visit_actuators",
    "visit_terms",
]

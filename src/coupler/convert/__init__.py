"""States of a robot in the conventions of Pinocchio and MuJoCo, and back.

Other libraries have entries for every joint of the spanning tree, dependent ones included, in an order of their own.
Joints are matched by their names, so that a robot and a model from the same file fit together:

    robot = coupler.load("robot.urdf", floating=True)
    model = pin.buildModelFromUrdf("robot.urdf", pin.JointModelFreeFlyer())
    p, w = coupler.convert.to_pinocchio(robot, q, v, model)
    q, v = coupler.convert.from_pinocchio(robot, p, w, model)

The conventions, side by side, are in docs/conventions.md.
"""

from coupler.convert.states import (
    from_mujoco,
    from_pinocchio,
    mujoco_jacobian,
    pinocchio_jacobian,
    to_mujoco,
    to_pinocchio,
)

__all__ = ["from_mujoco", "from_pinocchio", "mujoco_jacobian", "pinocchio_jacobian", "to_mujoco", "to_pinocchio"]

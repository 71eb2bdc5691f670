"""The spanning tree of a robot in Pinocchio."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler import Robot
from coupler.model import Free, Prismatic, Revolute, Spherical

__all__ = ["PinocchioTree"]


class PinocchioTree:
    """The spanning tree of a robot in Pinocchio, and the way from coupler's coordinates to its own."""

    def __init__(self, pin: Any, robot: Robot) -> None:
        self.pin, self.robot, self.model = pin, robot, pin.Model()
        self.model.gravity.linear = np.array(robot.gravity)
        self.joint, self._q, self._v = {0: 0}, [], []
        for child in robot.tree.children[0]:
            self._add(child)
        self.data = self.model.createData()

    def _add(self, number: int) -> None:
        """Adds a link and its children, depth first, as `crba` needs. Axes of hinges and slides are z already."""
        pin, tree = self.pin, self.robot.tree
        link = tree.links[number]
        # Quaternions are x, y, z, w there, and velocities linear first.
        kinds = {
            Revolute: (pin.JointModelRZ, [0], [0]),
            Prismatic: (pin.JointModelPZ, [0], [0]),
            Spherical: (pin.JointModelSpherical, [1, 2, 3, 0], [0, 1, 2]),
            Free: (pin.JointModelFreeFlyer, [0, 1, 2, 4, 5, 6, 3], [3, 4, 5, 0, 1, 2]),
        }
        own = next((made for kind, made in kinds.items() if isinstance(link.kind, kind)), None)
        if own is None:
            raise TypeError(f"joint {link.joint!r}: a {link.kind.kind} joint is not converted")
        kind = own[0]()
        self.joint[number] = self.model.addJoint(self.joint[link.parent], kind, self.pose(link.placement), link.joint)
        mass, h = float(link.inertia.m), np.asarray(link.inertia.h)
        centre = h / mass if mass else h
        about_centre = np.asarray(link.inertia.I) + mass * pin.skew(centre) @ pin.skew(centre)
        self.model.appendBodyToJoint(self.joint[number], pin.Inertia(mass, centre, about_centre), pin.SE3.Identity())
        self._q += tree.positions(number)[own[1]].tolist()
        self._v += tree.velocities(number)[own[2]].tolist()
        for child in tree.children[number]:
            self._add(child)

    def pose(self, X: Any) -> Any:
        """The pose (SE3) of a frame in another, given the transform from the other to it."""
        return self.pin.SE3(np.array(X.E).T, np.array(X.r))

    def positions(self, q: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(self.robot.embedding.positions(q)[..., self._q])

    def velocities(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        embedding = self.robot.embedding
        return np.ascontiguousarray(embedding.velocities(embedding.positions(q), v)[..., self._v])

    def spread(self, x: np.ndarray) -> np.ndarray:
        """Numbers of independent joints, in Pinocchio's order, with zeros at all others."""
        whole = np.zeros((*x.shape[:-1], len(self._v)))
        whole[..., self.robot.embedding.v_index] = x
        return whole[..., self._v]

    def gathered(self, x: np.ndarray) -> np.ndarray:
        """The numbers of independent joints, in coupler's order."""
        whole = np.empty_like(x)
        whole[..., self._v] = x
        return whole[..., self.robot.embedding.v_index]

    def motion_matrix(self) -> np.ndarray:
        """G: velocities of all joints from independent ones. With gears and belts it is constant."""
        return self.robot.explicit_constraint(self.robot.neutral())[0][self._v]

    def point_constraints(self) -> tuple[Any, Any]:
        """All loops as points that are held together, for `constraintDynamics`; ones in a plane have a row too many."""
        pin = self.pin
        loops, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for loop in self.robot.loops:
            ends: list[Any] = []
            for body, frame in ((loop.predecessor, loop.predecessor_frame), (loop.successor, loop.successor_frame)):
                number, placed = self.robot.tree.place[body]
                ends += [self.joint[number], self.pose(frame @ placed)]
            kind, axes = pin.ContactType.CONTACT_3D, pin.ReferenceFrame.LOCAL
            loops.append(pin.RigidConstraintModel(kind, self.model, *ends, axes))
            datas.append(loops[len(loops) - 1].createData())
        return loops, datas

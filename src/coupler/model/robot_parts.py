"""The parts of a robot, their names, and where its joints are in q and v."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from coupler.graph import Backend
from coupler.model.actuators import Actuator
from coupler.model.bodies import Body
from coupler.model.closed_forms import ClosedForm
from coupler.model.closed_forms.choice import Closing
from coupler.model.clusters import ClusterTree
from coupler.model.elements import PointElement
from coupler.model.embedding.coordinates import Embedding
from coupler.model.embedding.idle import IdleFreedom
from coupler.model.embedding.states import States
from coupler.model.errors import ModelError
from coupler.model.loops import Coupling, LoopJoint
from coupler.model.names import Parts
from coupler.model.parameter_layout import GivenParameters
from coupler.model.shapes import ContactPair, Shape
from coupler.model.tree import Tree, TreeJoint
from coupler.model.wording import clipped, listed


@dataclass(frozen=True, eq=False, repr=False)
class RobotParts:
    """The parts of a robot and their names; `Robot` documents the attributes."""

    name: str
    gravity: np.ndarray
    bodies: Mapping[str, Body]
    joints: Parts[TreeJoint]
    loops: Parts[LoopJoint]
    couplings: Parts[Coupling]
    elements: Parts[PointElement]
    remarks: tuple[str, ...]
    warnings: tuple[str, ...]
    idle: tuple[IdleFreedom, ...]
    tree: Tree
    cluster_tree: ClusterTree
    states: States
    shapes: Parts[Shape] = field(default_factory=Parts)
    keyframes: Mapping[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    actuators: Parts[Actuator] = field(default_factory=Parts)
    exclusions: tuple[tuple[str, str], ...] = ()
    contact_pairs: Parts[ContactPair] = field(default_factory=Parts)
    precision: float = 0.0
    locks_idle: bool = False
    closed_forms: Mapping[str, ClosedForm] = field(default_factory=dict)
    closure: Mapping[str, Closing] = field(default_factory=dict)
    backend: Backend = "llvm"
    given: GivenParameters | None = None

    def __post_init__(self) -> None:
        for name in ("joints", "loops", "couplings", "elements", "shapes", "actuators", "contact_pairs"):
            parts = getattr(self, name)
            if not isinstance(parts, Parts):
                object.__setattr__(self, name, Parts(parts))
        if self.given is not None:  # its programs are those of its base, so that both must have the same parts
            apart = [part.name for part in fields(self) if part.name not in ("given", "states")]
            if any(getattr(self, name) is not getattr(self.given.base, name) for name in apart):
                raise ModelError(f"robot {self.name!r} has parameters: change the robot first, then give it parameters")

    def check_fixed(self, method: str) -> None:
        """Raises a ModelError for a robot with given parameters: what is built from its parts would lack them."""
        if self.given is not None:
            given = listed(self.given.values)
            raise ModelError(f"{method}: robot {self.name!r} has parameters, {given}; build it with these numbers")

    # Names and places

    @property
    def nq(self) -> int:
        """The number of entries of q."""
        return len(self.embedding.q_index)

    @property
    def nv(self) -> int:
        """The number of entries of v: the robot's degrees of freedom."""
        return len(self.embedding.v_index)

    @property
    def mass(self) -> Any:
        """The total mass of all bodies, kg; an array, (...), where given masses are a batch."""
        given = {} if self.given is None else self.given.values
        return sum(given.get(f"mass:{name}", body.mass) for name, body in self.bodies.items())

    @property
    def body_names(self) -> list[str]:
        """The names of all bodies, in the order of their description; `f_ext` has the same order."""
        return list(self.bodies)

    @property
    def joint_names(self) -> list[str]:
        """The names of all joints of the spanning tree, fixed ones included, in the order of their description."""
        return [joint.name for joint in self.joints]

    @property
    def actuated_joints(self) -> list[str]:
        """The joints that an actuator drives."""
        return [joint.name for joint in self.joints if joint.actuated]

    @property
    def position_joints(self) -> list[str]:
        """The joints whose positions q holds, in its order."""
        kept = set(self.embedding.q_index.tolist())
        return [joint for joint, link in self._moving.items() if int(self.tree.q_start[link]) in kept]

    @property
    def independent_joints(self) -> list[str]:
        """The joints whose velocities v holds, whole or in part, in its order."""
        return list(dict.fromkeys(self.tree.joint_of(int(entry)) for entry in self.embedding.v_index))

    @property
    def frame_names(self) -> list[str]:
        """The names of frames and contact points, body by body."""
        return [name for body in self.bodies.values() for name in (*body.frames, *body.contacts)]

    @property
    def _moving(self) -> dict[str, int]:
        """The link of each moving joint, in the order of description."""
        links = self.tree.links_of(self.joint_names)
        return {self.tree.links[link].joint: link for link in links}

    @property
    def actuator_names(self) -> list[str]:
        """The names of all actuators, in the order in which `Simulation.step(motors=...)` takes controls."""
        return [actuator.name for actuator in self.actuators]

    def q_slice(self, joint: str) -> slice:
        """The entries of q that are a joint's position."""
        entries = self.tree.positions(self._link(joint))
        return self._slice(joint, entries, self.embedding.q_index, "position")

    def v_slice(self, joint: str) -> slice:
        """The entries of v that are an independent joint's velocity, or the independent part of it."""
        entries = self.tree.velocities(self._link(joint))
        return self._slice(joint, entries, self.embedding.v_index, "velocity")

    def _slice(self, joint: str, entries: np.ndarray, index: np.ndarray, what: str) -> slice:
        places = np.flatnonzero(np.isin(index, entries))
        if not places.size:
            others = self._siblings(joint)
            raise ModelError(
                f"joint {joint!r}: its {what} depends on others; independent in its cluster is {listed(others)}"
            )
        return slice(int(places[0]), int(places[-1]) + 1)

    def _siblings(self, joint: str) -> list[str]:
        """The names of the independent joints in a joint's cluster."""
        cluster = self.cluster_tree.cluster_of[self._link(joint)]
        members = {self.tree.links[link].joint for link in self.cluster_tree.clusters[cluster].bodies}
        return [name for name in self.independent_joints if name in members]

    def _link(self, joint: str) -> int:
        if isinstance(joint, str) and joint in self.tree.number:
            return self.tree.number[joint]
        if isinstance(joint, str) and joint in self.joint_names:
            raise ModelError(f"joint {joint!r} is fixed: it has neither position nor velocity")
        raise ModelError(
            f"robot {self.name!r} has no joint {clipped(joint)}; it has {listed(self._moving, like=joint)}"
        )

    @property
    def embedding(self) -> Embedding:
        """How q and v determine the positions and velocities of all joints."""
        return self.states.embedding

"""The robot: what it is made of, its clusters, and its coordinates. Frozen once built."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from coupler.forks import imports
from coupler.model.pickling import packed, unpacked
from coupler.model.robot_changes import RobotChanges
from coupler.model.text import robot_text
from coupler.model.wording import counted

__all__ = ["Robot"]


@dataclass(frozen=True, eq=False, repr=False)
class Robot(RobotChanges):
    """A robot with kinematic loops.

    Its state is q, of nq entries, and v, of nv. Of a cluster whose couplings are solved, q holds the positions of the
    independent joints; of any other cluster, those of all joints, which must fit together. v holds independent
    velocities only, as do accelerations and forces. Joints come in the order in which they are described. Arrays may
    have leading dimensions: a batch of states.

    Attributes:
        name: what it is called.
        gravity: 3, acceleration of free fall in the world, m/s².
        bodies: by name.
        joints: of the spanning tree.
        loops: joints that close loops.
        couplings: relations between joint positions.
        elements: springs and dampers between points.
        remarks: what is worth knowing: rows of loops that follow from others, where meshes were found.
        warnings: what is suspicious: a singular zero position, a keyframe that cannot be, parts of a file that are not
            modelled.
        idle: motions of single bodies in loops that leave all others at rest.
        tree: its moving links, in the form that algorithms use.
        cluster_tree: which links make clusters.
        states: its configurations and how they are closed.
        shapes: what its bodies look like and touch with.
        keyframes: states (q, v) that have a name.
        actuators: what drives it, in the order in which it is described; see `Actuator`. Each joint that is marked as
            actuated and that none of them acts on has a motor of its own name, with the joint's limits.
        exclusions: pairs of bodies, of which one may be "ground", that do not touch each other.
        contact_pairs: pairs of shapes that may touch whatever else is said, with their own friction.
        precision: by how much its numbers are rounded, m or rad, if rows of its loops were dropped for that; else 0.
        locks_idle: whether idle freedoms are locked; see `RobotBuilder.build`.
        closed_forms: of loops and couplings that are closed analytically, by their names.
        closure: how each loop and coupling was to be closed; see `with_closure`.
        backend: what runs its programs; see `with_backend`.
        given: parameters that its programs take as inputs; see `with_parameters`. Other attributes describe it without
            them.
    """

    def save(self, path: str | Path) -> Path:
        """Writes it as URDF+ (".urdf"), MJCF (".xml") or SDFormat (".sdf"); loading that gives the same dynamics.

        Raises:
            ModelError: for something that the format cannot hold. Nothing is written then.
        """
        self.check_fixed("save")
        with imports():
            from coupler.io.save import save  # a call upwards: files know robots

        return save(self, path)

    def draw(self, path: str | Path | None = None) -> Path:
        """Writes a picture of its connectivity graph and its cluster tree as an SVG file, named after it by default."""
        plain = re.sub(r"[^\w.-]+", "_", self.name)
        path = Path(f"{plain}.svg" if path is None else path)
        path.write_text(self._repr_svg_(), encoding="utf-8")
        return path

    def _repr_svg_(self) -> str:
        """The picture, as notebooks ask for it."""
        with imports():
            from coupler.view.robot_graph import robot_picture  # a call upwards: pictures know robots

        return robot_picture(self)

    def __str__(self) -> str:
        return robot_text(self)

    def __repr__(self) -> str:
        return f"<Robot {self.name!r}: {counted(len(self.bodies), 'body', 'bodies')}, {counted(self.nv, 'freedom')}>"

    # Copies

    def __copy__(self) -> Robot:
        return self  # nothing about it ever changes, and what is compiled for it serves both

    def __deepcopy__(self, memo: Any) -> Robot:
        return self

    def __reduce__(self) -> Any:
        """Pickles what it is made of; programs are compiled again, or read from disk, where they are needed."""
        if self.given is not None:
            return Robot.with_parameters, (self.given.base, dict(self.given.values))
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        return _unpickled, (type(self), packed(self.name, parts))


def _unpickled(kind: type[Robot], data: bytes) -> Robot:
    return kind(**unpacked(data))

"""YAML files that describe loops: their values, the lines these are on, and the parts of the robot they name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coupler.io.urdf.description import Description
from coupler.io.urdf.parts import JointPart
from coupler.io.yaml import line_of
from coupler.model import ModelError
from coupler.model.wording import clipped, listed


@dataclass(eq=False)
class ClosureFile:
    """A file that describes loops of a robot.

    Attributes:
        d: the description of the robot.
        path: the path of the file.
        absent: names of joints in it that the robot does not have.
    """

    d: Description
    path: Path
    absent: list[str] = field(default_factory=list)

    def where(self, value: Any) -> str:
        """The file and the line of a value, for messages."""
        return f"{self.path}{line_of(value)}"

    def error(self, value: Any, message: str) -> ModelError:
        """An error that names the line of a value."""
        return ModelError(f"{self.where(value)}: {message}")

    def entries(self, value: Any, key: str, where: str = "") -> list[Any]:
        """The value of a key, which must be a list."""
        if not isinstance(value, list):
            raise ModelError(f"{where or self.where(value)}: {key} must be a list, got {clipped(value)}")
        return value

    def joints(self, names: list[Any]) -> list[JointPart]:
        """The joints with these names; names that the robot does not have are added to `absent`."""
        absent = [name for name in names if isinstance(name, str) and name not in self.d.joints]
        self.absent += [name for name in absent if name not in self.absent]
        return [self.joint(name) for name in names if name not in absent]

    def joint(self, name: Any) -> JointPart:
        """The joint of this name, which the robot must have."""
        if not isinstance(name, str) or name not in self.d.joints:
            robot = self.d.root.file.name
            raise self.error(name, f"{robot} has no joint {clipped(name)}; it has {listed(self.d.joints)}")
        return self.d.joints[str(name)]


def link_of(d: Description, where: str, frame: Any) -> str:
    """The link of a frame, which is named after a link, or after the joint that carries the link."""
    name = d.renamed.get(frame, frame) if isinstance(frame, str) else frame
    if isinstance(name, str) and name in d.links:
        return str(name)
    if isinstance(name, str) and name in d.joints:
        return d.joints[str(name)].child
    raise ModelError(f"{where}: {d.root.file.name} has no frame {clipped(frame)}; it has {listed(d.links)}")

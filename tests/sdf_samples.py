"""Descriptions in SDFormat for tests: an arm in several versions, every kind of joint, machines with loops or gears."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from coupler.io.writing import rpy_of
from coupler.model import RobotBuilder
from coupler.rotation import about_y, about_z, from_euler

__all__ = ["ARMS", "BIPED", "FOUR_BAR", "KINDS", "STEWART", "add_body", "inertial", "joint", "link", "sdf"]


def sdf(inside: str, version: str = "1.11", name: str = "robot", **attributes: str) -> str:
    """A file with one model."""
    given = "".join(f' {word}="{value}"' for word, value in attributes.items())
    return f'<sdf version="{version}">\n<model name="{name}"{given}>\n{inside}</model></sdf>'


def inertial(mass: float = 1.5, pose: str = "0.1 0.02 -0.05 0.3 -0.2 0.1") -> str:
    moments = "<ixx>0.02</ixx><iyy>0.03</iyy><izz>0.025</izz><ixy>0.001</ixy><ixz>-0.002</ixz><iyz>0.0005</iyz>"
    return f"<inertial><pose>{pose}</pose><mass>{mass}</mass><inertia>{moments}</inertia></inertial>"


def add_body(b: RobotBuilder, name: str, mass: float = 1.5) -> None:
    """What `inertial` describes, for a builder."""
    R = from_euler(0.3, -0.2, 0.1)
    moments = np.array([[0.02, 0.001, -0.002], [0.001, 0.03, 0.0005], [-0.002, 0.0005, 0.025]])
    b.body(name, mass, (0.1, 0.02, -0.05), R @ moments @ R.T)


def link(name: str, pose: str = "", inside: str = "", mass: float = 1.5) -> str:
    """A link; its pose may begin with attributes in brackets."""
    return f'<link name="{name}">{pose_element(pose)}{inertial(mass)}{inside}</link>\n'


def pose_element(pose: str) -> str:
    attributes, _, numbers = pose.rpartition("]")
    return f"<pose {attributes[1:]}>{numbers}</pose>" if pose else ""


def joint(name: str, kind: str, parent: str, child: str, axis: str = "", pose: str = "", inside: str = "") -> str:
    """A joint; of several axes, which semicolons divide, the second is <axis2>."""
    axes = [f"<xyz>{xyz}</xyz>" if "<" not in xyz else xyz for xyz in axis.split(";") if xyz]
    given = "".join(f"<{tag}>{xyz}</{tag}>" for tag, xyz in zip(("axis", "axis2"), axes, strict=False))
    ends = f"<parent>{parent}</parent><child>{child}</child>"
    return f'<joint name="{name}" type="{kind}">{pose_element(pose)}{ends}{given}{inside}</joint>\n'


# One arm: its links are given in the model's frame, the joints on the links, the axes in the frame of the version.
_LINKS = (
    link("base", "0.1 0 0.2 0 0 0.4") + link("upper", "0.2 0.1 0.5 0.3 0 0") + link("lower", "0.2 0.4 0.8 0 0.7 0.2")
)


def _rpy(R: np.ndarray) -> str:
    return " ".join(repr(float(x)) for x in rpy_of(R))


def _arm(version: str) -> str:
    spread = np.array([0.6, 0.0, 0.8])
    turn = about_z(0.2) @ about_y(0.7) @ about_y(0.1)  # of the elbow's frame in the model: the link's, and its own
    in_joint = " ".join(repr(float(x)) for x in turn.T @ spread)
    axis = {
        "1.4": "<xyz>0.6 0 0.8</xyz>",
        "1.6": "<xyz>0.6 0 0.8</xyz><use_parent_model_frame>true</use_parent_model_frame>",
        "1.7": '<xyz expressed_in="__model__">0.6 0 0.8</xyz>',
        "1.11": f"<xyz>{in_joint}</xyz>",
    }[version]
    foot = joint("stand", "fixed", "world", "base")
    hip = joint("swing", "revolute", "base", "upper", "0 1 0", "0 0 0 -0.3 0 0")  # parallel to the model's frame
    elbow = joint("elbow", "revolute", "upper", "lower", axis, "0.1 0 0 0 0.1 0")
    return sdf(_LINKS + foot + hip + elbow, version, "arm")


ARMS = {version: _arm(version) for version in ("1.4", "1.6", "1.7", "1.11")}

_LIMIT = "<limit><lower>-1</lower><upper>2</upper><effort>30</effort><velocity>4</velocity></limit>"
_PASSIVE = (
    "<dynamics><damping>0.3</damping><friction>0.2</friction>"
    "<spring_stiffness>5</spring_stiffness><spring_reference>0.4</spring_reference></dynamics>"
)
KINDS = {
    "revolute": joint("j", "revolute", "a", "b", f"<xyz>0.6 0 0.8</xyz>{_LIMIT}{_PASSIVE}", "0.1 0.2 0 0.3 0 0.1"),
    "continuous": joint("j", "continuous", "a", "b", "0 3 4", "0.1 0.2 0 0.3 0 0.1"),
    "prismatic": joint("j", "prismatic", "a", "b", f"<xyz>0 0.6 0.8</xyz>{_LIMIT}", "0.1 0.2 0 0.3 0 0.1"),
    "screw": joint("j", "screw", "a", "b", "0 0 1", "0 0 0.1 0.3 0 0", "<screw_thread_pitch>0.5</screw_thread_pitch>"),
    "old screw": joint("j", "screw", "a", "b", "0 0 1", "0 0 0.1 0.3 0 0", "<thread_pitch>-4</thread_pitch>"),
    "universal": joint("j", "universal", "a", "b", "1 0 0;0 1 0", "0.1 0.2 0 0.3 0 0.1"),
    "revolute2": joint("j", "revolute2", "a", "b", "0 0 1;0.6 0.8 0", "0.1 0.2 0 0.3 0 0.1"),
    "ball": joint("j", "ball", "a", "b", "", "0.1 0.2 0 0.3 0 0.1"),
    "piston": joint("j", "piston", "a", "b", "0 0.6 0.8", "0.1 0.2 0 0.3 0 0.1"),
    "fixed": joint("j", "fixed", "a", "b", "", "0.1 0.2 0 0.3 0 0.1"),
}

_HINGE = "0 1 0"
FOUR_BAR = sdf(
    link("crank", "0 0 0 0 0 0")
    + link("coupler", "0 0 0.2 0 0 0")
    + link("rocker", "0.4 0 0 0 0 0")
    + joint("shoulder", "revolute", "world", "crank", _HINGE)
    + joint("bend", "revolute", "crank", "coupler", _HINGE)
    + joint("pivot", "revolute", "world", "rocker", _HINGE)
    + joint("pin", "revolute", "coupler", "rocker", _HINGE, "0 0 0.25 0 0 0"),
    name="four_bar",
)


def _ring(radius: float, height: float, offset: float) -> list[np.ndarray]:
    """Six points, in three pairs."""
    angles = [2.0 * np.pi * k / 3.0 + side * offset for k in range(3) for side in (-1.0, 1.0)]
    return [np.array([radius * np.cos(angle), radius * np.sin(angle), height]) for angle in angles]


def _text(numbers: Iterable[float]) -> str:
    return " ".join(repr(float(x)) for x in numbers)


def _stewart() -> str:
    """Six legs, each a universal joint on the ground, a slide, and a ball on the platform."""
    parts = link("platform", "0 0 0.6 0 0 0", mass=4.0)
    for i, (foot, top) in enumerate(zip(_ring(0.5, 0.0, 0.2), _ring(0.3, 0.6, 0.8), strict=True), 1):
        way = top - foot
        z = way / np.linalg.norm(way)
        x = np.cross([0.0, 1.0, 0.0], z)
        x = x / np.linalg.norm(x)
        turn = _rpy(np.stack([x, np.cross(z, x), z], axis=1))
        parts += link(f"cylinder{i}", f"{_text(foot)} {turn}", mass=0.5)
        parts += link(f"rod{i}", f"{_text(top)} {turn}", mass=0.4)
        parts += joint(f"foot{i}", "universal", "world", f"cylinder{i}", "1 0 0;0 1 0")
        parts += joint(f"slide{i}", "prismatic", f"cylinder{i}", f"rod{i}", "0 0 1")
        parts += joint(f"top{i}", "ball", f"rod{i}", "platform", "", f"[relative_to='rod{i}']0 0 0 0 0 0")
    return sdf(parts, name="stewart")


STEWART = _stewart()


def _biped() -> str:
    """A pelvis with two legs; rotors in the pelvis and the thighs drive hips and knees through gearboxes."""
    parts = link("pelvis", "0 0 1 0 0 0", mass=8.0)
    for side, y in (("left", 0.1), ("right", -0.1)):
        ratio = "<gearbox_ratio>9</gearbox_ratio><gearbox_reference_body>{}</gearbox_reference_body>"
        parts += link(f"{side}_thigh", f"0 {y} 1 0 0 0", mass=2.0) + link(f"{side}_shank", f"0 {y} 0.6 0 0 0")
        parts += link(f"{side}_hip_rotor", f"0.05 {y} 1.1 0 0 0", mass=0.2)
        parts += link(f"{side}_knee_rotor", f"0 {y} 0.9 0 0 0", mass=0.1)
        parts += joint(f"{side}_hip", "revolute", "pelvis", f"{side}_thigh", _HINGE)
        parts += joint(f"{side}_knee", "revolute", f"{side}_thigh", f"{side}_shank", _HINGE)
        parts += joint(f"{side}_hip_motor", "revolute", "pelvis", f"{side}_hip_rotor", _HINGE)
        parts += joint(f"{side}_knee_motor", "revolute", f"{side}_thigh", f"{side}_knee_rotor", "0 -1 0")
        for name, body, rotor, frame in (
            ("hip", "thigh", "hip_rotor", "pelvis"),
            ("knee", "shank", "knee_rotor", f"{side}_thigh"),
        ):
            gear = joint(
                f"{side}_{name}_gearbox", "gearbox", f"{side}_{body}", f"{side}_{rotor}", "0 1 0;0 1 0", "", ratio
            )
            parts += gear.format(frame)
    return sdf(parts, name="biped")


BIPED = _biped()

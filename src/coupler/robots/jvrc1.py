"""JVRC-1: a humanoid with a geared motor at each of its 32 joints."""

from __future__ import annotations

from coupler.mechanisms import gear
from coupler.model import Free, Revolute, Robot, RobotBuilder
from coupler.robots._legged import Point, X, Y, Z, foot_point, on_side

Limb = tuple[tuple[str, Point, float, Point, Point], ...]

AXES = {"_r": X, "_p": Y, "_y": Z, "ee": Y}  # by the ends of names; a knee pitches
TURNS = {"r": "roll", "p": "pitch", "y": "yaw"}
GEAR = 6.0
# Mass, centre, moments of all rotors, whichever way they turn; no real disc has these.
ROTOR = 0.07, (0, 0, 0), (2e-5, 2e-5, 5e-5)

HERE = (0, 0, 0)  # where most joints are: upon the one before

# Body, where its joint is on the body before, mass in kg, centre in m, moments about the centre in kg m².
TRUNK = (
    ("waist_y", (0, 0, 0.192), 1.0, (0, 0, -0.07), (0.00173, 0.00173, 0.0032)),
    ("waist_p", HERE, 1.0, (0, 0, 0), (0.002425, 0.002425, 0.002425)),
    ("waist_r", HERE, 10.0, (0.02, 0, 0.24), (0.157083, 0.101083, 0.1367)),
)
NECK = (
    ("neck_y", (-0.003, 0, 0.453), 0.5, (0, 0, -0.05), (0.000729167, 0.000729167, 0.000625)),
    ("neck_r", HERE, 0.5, (0, 0, 0), (0.0005, 0.0005, 0.0005)),
    ("neck_p", HERE, 2.0, (0.01, 0, 0.11), (0.00968, 0.00968, 0.00968)),
)
LEG = (  # the left one, like the arm; those on the right are mirrored
    ("hip_p", (0, 0.096, 0), 1.0, (0, 0, 0), (0.00196, 0.00196, 0.00196)),
    ("hip_r", HERE, 1.0, (0, 0, 0), (0.00196, 0.00196, 0.00196)),
    ("hip_y", HERE, 3.0, (0.01, 0, -0.22), (0.031925, 0.034525, 0.00865)),
    ("knee", (-0.02, 0, -0.389), 3.0, (0.04, 0, -0.16), (0.031925, 0.034525, 0.00865)),
    ("ankle_r", (0.04, 0, -0.357), 1.0, (0, 0, 0), (0.00064, 0.00064, 0.00064)),
    ("ankle_p", HERE, 1.5, (0.03, 0, -0.07), (0.001417, 0.005617, 0.006217)),
)
ARM = (
    ("shoulder_p", (0, 0.24, 0.33), 1.0, (0, 0, 0), (0.00196, 0.00196, 0.00196)),
    ("shoulder_r", HERE, 1.0, (0, 0, 0), (0.00196, 0.00196, 0.00196)),
    ("shoulder_y", HERE, 2.0, (-0.01, 0, -0.19), (0.01365, 0.0146, 0.00635)),
    ("elbow_p", (0.004, 0, -0.305), 1.0, (-0.02, 0, -0.1), (0.010675, 0.010675, 0.0027)),
    ("elbow_y", (-0.004, 0, -0.239), 1.0, (0, 0, 0), (0.00064, 0.00064, 0.00064)),
    ("wrist_r", HERE, 0.5, (0, 0, 0), (0.00032, 0.00032, 0.00032)),
)
HAND = (("wrist_y", HERE, 0.5, (0, -0.01, -0.06), (0.0004625, 0.0007625, 0.0004625)),)

POINTS = (  # contact point, body, where on the left, where on the right
    ("toe", "ankle_p", (0.1, 0, -0.041), (-0.1, 0, -0.041)),  # the right one so in the published model, and kept
    ("heel", "ankle_p", (-0.05, 0, -0.041), (-0.05, 0, -0.041)),
    ("wrist", "wrist_y", (0, 0, 0), (0, 0, 0)),
    ("hand", "wrist_y", (0, 0, -0.27), (0, 0, -0.27)),
)


def jvrc1() -> Robot:
    """The humanoid with its rotors: 38 freedoms, 65 bodies."""
    b = RobotBuilder("jvrc1")
    b.body("pelvis", 10.0, (-0.01, 0, 0.034), (0.089583, 0.089583, 0.1125))
    b.joint("floating_base", Free(), "ground", "pelvis")
    _limb(b, "pelvis", "", TRUNK)
    _limb(b, "waist_r", "", NECK)
    for parent, limb in (("pelvis", LEG), ("waist_r", ARM), ("{side}_wrist_r", HAND)):
        for side in ("left", "right"):
            _limb(b, parent.format(side=side), side, limb)
    for name, body, left, right in POINTS:
        foot = body == "ankle_p"
        foot_point(b, f"left_{name}_contact", f"left_{body}", left, again=foot and name != "toe")
        foot_point(b, f"right_{name}_contact", f"right_{body}", right, again=foot)
    return b.build()


def _limb(b: RobotBuilder, parent: str, side: str, rows: Limb) -> None:
    """Bodies one after the other, each with its rotor; on the right mirrored in y."""
    sign = -1 if side == "right" else 1
    for part, at, mass, centre, moments in rows:
        body = f"{side}_{part}" if side else part
        joint = f"{_spoken(parent)}-to-{_spoken(part if parent.startswith(side) else body)}"
        kind, place = Revolute(axis=AXES[part[-2:]]), on_side(sign, at)
        b.body(body, mass, on_side(sign, centre), moments)
        b.body(f"{body}_rotor", *ROTOR, ideal=True)
        b.joint(joint, kind, parent, body, place, actuated=True)
        b.joint(f"{joint}-rotor", kind, parent, f"{body}_rotor", place)
        b.couple(f"{body}_gears", [joint, f"{joint}-rotor"], gear(GEAR), [joint])
        parent = body


def _spoken(body: str) -> str:
    """The part of a joint's name that names its body: left-hip-pitch for left_hip_p."""
    words = ("base" if body == "pelvis" else body).split("_")
    return "-".join(TURNS.get(word, word) for word in words)

"""RH5 Manus: a humanoid's upper body, whose torso and elbows are moved by linear actuators in loops.

The robot of [003], reduced as there: without head, wrists and hands. Names and numbers are those of the model that its
authors published, where each body is called like its joint, with _Link behind it.
"""

from __future__ import annotations

from math import inf, radians

import numpy as np

from coupler.model import Fixed, Free, Held, Joint, Prismatic, Revolute, Robot, RobotBuilder, Sphere, Spherical
from coupler.robots._legged import X, Y, Z, inertia_matrix
from coupler.rotation import from_euler
from coupler.spatial import Transform

JOINTS = {  # by the body that each carries: on which it is, axis, where in m, roll, pitch and yaw in rad
    "BodyRoot": ("RH5v2_Root", None, (0, 0, 0.016), (3.141593, 0, 1.570793)),
    "BodyPitch": ("BodyRoot", Y, (0, 0, 0), (3.141593, 0, 1.570797)),
    "BodyRoll": ("BodyPitch", X, (0, 0, 0), (0, 0, 0)),
    "BodyBL1": ("BodyRoot", X, (0.02, -0.089827, 0.21), (2.899823, 0, 1.5708)),
    "BodyBL2": ("BodyBL1", Y, (0, 0, 0), (0, -0.010339, 0)),
    "BodyActL": ("BodyBL2", Z, (0, 0, 0.23999), (0, 0, 0)),
    "BodyBR1": ("BodyRoot", X, (-0.02, -0.089827, 0.21), (-2.899823, 0, 1.5708)),
    "BodyBR2": ("BodyBR1", Y, (0, 0, 0), (0, -0.010339, 0)),
    "BodyActR": ("BodyBR2", Z, (0, 0, 0.23999), (0, 0, 0)),
    "BodyYaw": ("BodyRoll", Z, (0, 0, 0), (0, 0, 0)),
    "Connector_Body/Torso": ("BodyYaw", None, (0, 0, 0.0525), (-1.570793, -1.570793, 1.570796)),
    "ALBase": ("Connector_Body/Torso", None, (0.29809, 0.12609, 0.025162), (1.508093, 0.25436, 1.3265)),
    "ALShoulder1": ("ALBase", X, (0.1076, 0, 0), (3.1416, 0, 0)),
    "ALShoulder2": ("ALShoulder1", Y, (0, 0, 0), (0, 0, 0)),
    "ALShoulder3": ("ALShoulder2", Z, (0, 0, 0), (0, 0, 1.5707)),
    "ALElbow": ("ALShoulder3", X, (0, 0.001, 0.3511), (0, 0, 0)),
    "ALElbowB11": ("ALShoulder3", X, (0, -0.029, 0.1391), (-0.25319, 0, 0)),
    "ALElbowAct": ("ALElbowB11", Z, (0, 0, 0.29542), (0, 0, 0)),
    "ALWristRoll": ("ALElbow", X, (0, 0, 0.122), (3.1416, -1.5708, 0)),
    "ARBase": ("Connector_Body/Torso", None, (0.29809, -0.12609, 0.025162), (-1.508093, 0.25436, -1.3265)),
    "ARShoulder1": ("ARBase", X, (0.1076, 0, 0), (-3.141585, 0, 3.141593)),
    "ARShoulder2": ("ARShoulder1", Y, (0, 0, 0), (0, 0, -3.141592)),
    "ARShoulder3": ("ARShoulder2", Z, (0, 0, 0), (-3.141593, 1e-06, -1.5707)),
    "ARElbow": ("ARShoulder3", X, (0, 0.001, -0.3511), (-3.141592, 0, -3.141592)),
    "ARElbowB11": ("ARShoulder3", X, (0, -0.029, -0.1391), (2.888403, 0, -3.141592)),
    "ARElbowAct": ("ARElbowB11", Z, (0, 0, 0.29542), (0, 0, -3.141592)),
    "ARWristRoll": ("ARElbow", X, (0, 0, 0.122), (0.08344, 1.570793, -3.058159)),
}
WEIGHTS = {  # mass in kg, centre in m
    "RH5v2_Root": (1.7255, (0.004352, -2.1674e-05, -0.079131)),
    "BodyRoot": (0.1819, (0.001001, 0.011445, 0.027995)),
    "BodyPitch": (0.076413, (0, 0, 0)),
    "BodyRoll": (1.4553, (-0.009734, 1.6e-05, 0.052947)),
    "BodyBL1": (0.042423, (0.020399, 0, 0)),
    "BodyBL2": (0.81664, (-5.3e-05, 1.1e-05, 0.12216)),
    "BodyActL": (0.1019, (0, 0, -0.077362)),
    "BodyBR1": (0.042423, (0.020399, 0, 0)),
    "BodyBR2": (0.81664, (-6.2e-05, -1.2e-05, 0.12216)),
    "BodyActR": (0.1019, (0, 0, -0.077362)),
    "BodyYaw": (0.25617, (5e-06, 0, 0.062225)),
    "Connector_Body/Torso": (9.05761951334947, (0, 0, 0)),
    "ALBase": (1.1943, (0.0079897, -7.1316e-07, 0.00019625)),
    "ALShoulder1": (1.602, (-0.0091569, 0.0036464, -0.00016872)),
    "ALShoulder2": (0.50849, (0.010763, 0.020477, 0.0278)),
    "ALShoulder3": (0.85234, (-3.2703e-05, 0.0033688, 0.14648)),
    "ALElbow": (0.63578, (-7.016e-05, 0.001127, 0.080286)),
    "ALElbowB11": (0.32696, (2.5944e-05, 1.8924e-05, 0.10704)),
    "ALElbowAct": (0.054652, (-6.1594e-06, 1.459e-10, -0.085859)),
    "ALWristRoll": (2e-05, (0, 0, 0)),
    "ARBase": (1.1943, (0.00799, 1e-06, 0.000196)),
    "ARShoulder1": (1.602, (0.009157, 0.003646, -0.000169)),
    "ARShoulder2": (0.508491743146126, (0.010763, -0.020477, 0.0278)),
    "ARShoulder3": (0.85257517062156, (-3.3e-05, 0.003369, -0.14648)),
    "ARElbow": (0.63578, (7e-05, 0.001127, 0.080286)),
    "ARElbowB11": (0.32696, (-2.6e-05, 1.9e-05, 0.10704)),
    "ARElbowAct": (0.054652, (-6e-06, 0, -0.085859)),
    "ARWristRoll": (2e-05, (0, 0, 0)),
}
MOMENTS = {  # about the centre: xx, yy, zz, xy, xz, yz in mg m²
    "RH5v2_Root": (16198, 10542, 16367, -0.6064, -1338.3, -0.50064),
    "BodyRoot": (165.60999999983, 213.46000013283, 341.68999986734, 0.00024259008, 0.0167589336, 0.19149442599),
    "BodyPitch": (13.771000000001, 13.770999999999, 24.637, 2.1213e-06, 2.1081e-06, -2.75761e-07),
    "BodyRoll": (1065.7999995181, 1000.6000004819, 1760.2, -0.737251307, -6.3201999392, 0.1860420654),
    "BodyBL1": (10, 18.5373, 20.3063, -2.957408e-06, 0, 0),
    "BodyBL2": (418.79999992416, 421.36000007584, 518.91, 0.10946911319, 0.46370999021, 0.02824816063),
    "BodyActL": (137.08249997353, 137.10250002647, 10, 0.03820199307, 0, 0),
    "BodyBR1": (10, 18.5373, 20.3063, -2.957408e-06, 0, 0),
    "BodyBR2": (418.74999995572, 421.40000004428, 518.91, 0.06390708201, 0.44057001108, -0.03199184738),
    "BodyActR": (137.08250002647, 137.10249997353, 10, -0.03820200693, 0, 0),
    "BodyYaw": (467.32, 467.27, 774.87, -1.634e-08, -0.021181, 6.92e-09),
    "Connector_Body/Torso": (
        135210.96197329,
        158152.42988378,
        224226.04262451,
        204.63773988,
        -5225.46539265,
        -44.2391581,
    ),
    "ALBase": (897.55, 575.65, 563.47, 0.014484, -0.26127, -0.78027),
    "ALShoulder1": (1211.7, 1556.1, 1002.4, -80.704, -3.528, -2.6511),
    "ALShoulder2": (1046.5, 925.68, 1039.3, 120.61, 54.855, 275.01),
    "ALShoulder3": (2801.3, 2740.1, 786.29, 0.51939, -0.72591, 54.672),
    "ALElbow": (509.99, 516.33, 465.37, 0.22297, 0.4047, -44.233),
    "ALElbowB11": (111.02, 112.51, 70.733, -0.010985, -0.066288, 0.14067),
    "ALElbowAct": (106.06969013629, 105.97469013629, 10.00000013629, 3.4925e-07, 0.0036185, -4.348e-08),
    "ALWristRoll": (20, 20, 20, 0, 0, 0),
    "ARBase": (897.55, 575.65, 563.47, -0.014484, -0.26127, 0.78027),
    "ARShoulder1": (1211.6999440867, 1556.100057542, 1002.3999983713, 80.7038796126, 3.5280257084, -2.6509286927),
    "ARShoulder2": (1046.4999259024, 925.6802430528, 1039.2998310448, -120.6100539644, 54.8548784736, -275.0100517517),
    "ARShoulder3": (2801.3000003191, 2740.0999618028, 786.2900378781, 0.5193714519, 0.7258930202, -54.6726770427),
    "ARElbow": (509.99000015448, 516.33002702047, 465.36997282506, -0.22297207207, -0.40468474587, -44.23298448631),
    "ARElbowB11": (111.01999998113, 112.51000000737, 70.7330000115, 0.0109844881, 0.06629144855, 0.14067002318),
    "ARElbowAct": (106.06969013566, 105.97469013629, 10.00000013692, -3.7948e-07, 0.00362683603, 4.233e-08),
    "ARWristRoll": (20, 20, 20, 0, 0, 0),
}
LIMITS = {  # rad, of what the paper calls independent joints, by the ends of their names
    "BodyPitch": (-radians(30), radians(30)),
    "BodyRoll": (-radians(25), radians(25)),
    "BodyYaw": (-3.002, 3.002),
    "Shoulder1": (-3.002, 3.002),
    "Shoulder2": (-0.243, 1.84),
    "Shoulder3": (-3.002, 3.002),
    "Elbow": (-1.8, 0.0),
    "WristRoll": (-3.002, 3.002),
}
ACTUATED = ("BodyActL", "BodyActR", "BodyYaw", "Shoulder1", "Shoulder2", "Shoulder3", "ElbowAct", "WristRoll")
# The wrist's flange in the complete robot, from where its roll joint is, m, and a ball of our own in place of a hand.
HANDS = {"left": ("ALWristRoll_Link", (0.21575, 0, 0)), "right": ("ARWristRoll_Link", (-0.21575, 0, 0))}
HAND_RADIUS = 0.04  # m


def rh5_manus(*, floating: bool = False) -> Robot:
    """Torso and arms: 13 freedoms of 23 joints, 28 bodies, 4 loops of 10 rows in all.

    The torso is a 2-SPU+1U: a universal joint, and two legs of a universal joint, an actuator and a ball. Each elbow is
    an RRPR. Velocities of the pitch, roll and elbow joints are independent, not those of actuators.

    Args:
        floating: whether the base is free to move in space, by a joint "floating_base"; else it stands on the ground.
    """
    b = RobotBuilder("rh5_manus")
    for name, (mass, centre) in WEIGHTS.items():
        b.body(f"{name}_Link", mass, centre, inertia_matrix(MOMENTS[name]))
    if floating:
        b.joint("floating_base", Free(), "ground", "RH5v2_Root_Link")
    else:
        b.joint("base", Fixed(), "ground", "RH5v2_Root_Link")
    for name, (carrier, axis, at, turned) in JOINTS.items():
        kind: Joint = Fixed()
        marks = {"actuated": name.endswith(ACTUATED)}
        if "Act" in name:
            kind = Prismatic(axis=axis)
        elif axis:
            limits = next((limits for end, limits in LIMITS.items() if name.endswith(end)), None)
            lower, upper = limits or (-inf, inf)
            kind, marks["independent"] = Revolute(axis=axis, lower=lower, upper=upper), limits is not None
        b.joint(name, kind, f"{carrier}_Link", f"{name}_Link", at, from_euler(*turned), **marks)
    for side in "LR":
        _close(b, f"BodyAct{side}", "BodyRoll", Spherical())
        _close(b, f"A{side}ElbowAct", f"A{side}Elbow", Held([[0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1]]))
    for side, (body, at) in HANDS.items():
        b.frame(f"{side}_hand", body, at)
        b.shape(body, Sphere(HAND_RADIUS), at, name=f"{side}_hand")
    return b.build()


def _close(b: RobotBuilder, actuator: str, moved: str, kind: Spherical | Held) -> None:
    """Adds the loop at the tip of an actuator, on the body that it moves, closed with all joints at zero."""
    at = _at_zero(actuator) @ _at_zero(moved).inverse()
    b.loop(f"{actuator}_loop", kind, f"{moved}_Link", f"{actuator}_Link", at)


def _at_zero(name: str) -> Transform:
    """The transform from the frame of the base to that of a body, with all joints at zero."""
    if name not in JOINTS:
        return Transform.identity()
    carrier, _, at, turned = JOINTS[name]
    return Transform(from_euler(*turned).T, np.array(at)) @ _at_zero(carrier)

"""The equations of [004] for the loops of CHARMIE, as printed, in plain NumPy: coupler is compared with them.

Indirectly actuated joints, the mechanism that balances the squat, springs, and how bodies 4 and 5 are held. Misprints
are corrected as in docs/papers.md. Points are named as in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from coupler.forces import Share
from coupler.mechanisms import Spring
from coupler.robots.charmie import AT_SPRING, D3, DROP, E4, F3, F4, H4, JOINTS, LEVER, POINTS, S3, S4, SPRINGS
from coupler.studies.charmie_chain import Chain, Loads, zxz_euler

B3, B4 = (np.array(JOINTS[body][3]) / 1e3 for body in ("4", "5"))
G5, I5 = (np.array(POINTS["5"][point]) / 1e3 for point in "GI")

# How the paper shares what statics leave open, for `coupler.joint_forces` [§5.2]: on body 5 half and half between its
# joint and its actuator; on body 4 all to its joint, but for the torque about z, half of which each side of the balance
# takes.
_SIDES = {"4slc": 0.0, "4src": 0.0}
PAPER_RULE = (
    Share("5", {"5": 0.5, "5d": 0.5, "5s": 0.0}, "fx my mz"),
    Share("4", {"4": 1.0, "4d": 0.0, **_SIDES}, "fx mx my"),
    Share("4", {"4": 1.0, **_SIDES}, "fy"),  # the actuator's is that of its direction
    Share("4", {"4": 0.0, "4d": 0.0, "4slc": 0.5, "4src": 0.5}, "mz"),
)

Springs = Mapping[str, Spring | None]


@dataclass(frozen=True)
class Balance:
    """Half of the balancing mechanism, on the right, in the axes of body 3: points and forces as x and z.

    Attributes:
        B4sra, B4srb, B4src: the end of the lever, its spring's point, and the slider, m.
        length: length of the spring, m.
        axle: force of body 3 on the lever at its axle, N.
        lift: force of the slider on body 4 along z, N.
    """

    B4sra: np.ndarray
    B4srb: np.ndarray
    B4src: np.ndarray
    length: float
    axle: np.ndarray
    lift: float


@dataclass(frozen=True)
class Held:
    """How a body is held by an actuator and by the joint that it moves, in the body's axes.

    Attributes:
        push: force of the actuator along its own direction, N.
        actuator, joint: 3 each, the forces of both, N.
    """

    push: float
    actuator: np.ndarray
    joint: np.ndarray


def indirect_joints(act4: float, act5: float) -> tuple[np.ndarray, np.ndarray]:
    """d₄ (m) and ϑ₅ (rad) of the lengths of both actuators, with their first and second derivatives by these: 3 each.

    Positions are eq. 5 to 14. The paper has no derivatives; here they come from s² = act₄² − Δy² and from the law of
    cosines, act₅² = e² + g² − 2 e g cos φ, where φ and ϑ₅ differ by a constant.
    """
    s = np.sqrt(act4**2 - (E4[1] - D3[1]) ** 2)
    d4 = B3[2] - (D3[2] + s - E4[2])  # eq. 6, with E₄ in place of E₃
    ds = act4 / s
    B, F, G = B4[1:], np.array(F4[1:]), G5[1:]
    beta5 = np.arctan(G[0] / G[1])  # eq. 8
    e = np.hypot(*(F - B))  # eq. 10
    along = (act5**2 - G @ G + e**2) / (2.0 * e)  # eq. 11
    h = np.sqrt(act5**2 - along**2)  # eq. 12
    G4 = along / e * (B - F) + h / e * np.array([B[1] - F[1], F[0] - B[0]]) + F  # eq. 13 and 14, with a minus sign
    alpha4 = np.arctan2(G4[1] - B[1], G4[0] - B[0])  # eq. 9
    g = np.hypot(*G)
    cosine = (e**2 + g**2 - act5**2) / (2.0 * e * g)
    sine = np.sqrt(1.0 - cosine**2)
    rate = act5 / (e * g * sine)
    bend = (1.0 - e * g * cosine * rate**2) / (e * g * sine)
    return np.array([d4, -ds, -(1.0 - ds**2) / s]), np.array([alpha4 + beta5 - np.pi / 2, rate, bend])  # eq. 7


def spring_tension(spring: Spring | None, length: float) -> float:
    """The tension of a spring, N: the negative of eq. 35, whose force pushes, with F₀ₛ = −T₀."""
    return 0.0 if spring is None else spring.stiffness * (length - spring.free_length) + spring.pretension


def balance(q4: float, spring: Spring | None = None) -> Balance:
    """Half of the balancing mechanism with joint 4 at q₄ = −d₄, m. [eq. 22 to 27, 39 to 41]"""
    F = np.array(F3)[[0, 2]]
    z = B3[2] + q4 + H4[2] - DROP  # eq. 22, 23
    B4sra = np.array([F[0] + np.sqrt(LEVER**2 - (z - F[1]) ** 2), z])  # eq. 24, on the right
    B4src = np.array([B4sra[0], z + DROP])  # eq. 25, with B₄ₛᵣₐ on its right
    B4srb = F + AT_SPRING / LEVER * (B4sra - F)  # eq. 26, 27
    to = np.array(S3)[[0, 2]] - B4srb
    length = float(np.hypot(*to))  # eq. 20
    pull = spring_tension(spring, length) * to / length  # on the lever [eq. 39]
    arm, tip = B4srb - F, B4sra - F
    lift = (pull[1] * arm[0] - pull[0] * arm[1]) / tip[0]  # eq. 40, 41: torques about the axle
    return Balance(B4sra, B4srb, B4src, length, np.array([-pull[0], lift - pull[1]]), float(lift))


def lower_loop(q4: float, force: np.ndarray, springs: Springs) -> Held:
    """How body 4 is held along z: by its actuator and by both halves of the balance. [eq. 42]

    Args:
        q4: position of joint 4, m.
        force: 3, what all of them and the joint transmit together, N.
        springs: 4slb and 4srb.
    """
    lift = sum(balance(q4, springs[name]).lift for name in ("4slb", "4srb"))
    along = B3 + np.array([0.0, 0.0, q4]) + np.array(E4) - np.array(D3)
    along = along / np.linalg.norm(along)
    push = (force[2] - lift) / along[2]
    return Held(float(push), push * along, np.array([force[0], force[1] - push * along[1], 0.0]))


def upper_loop(theta5: float, force: np.ndarray, torque: np.ndarray, spring: Spring | None) -> Held:
    """How body 5 is held, by its actuator, its spring and its joint. [eq. 20, 35 to 37]

    Actuator and joint share the force along x alike, as the paper assumes.

    Args:
        theta5: ϑ₅, rad.
        force, torque: 3 each, what all of them transmit together, the torque about O₅, N and N m.
        spring: 5s.
    """
    R = zxz_euler(0.0, theta5, 0.0)
    foot, held = R.T @ (np.array(F4) - B4), R.T @ (np.array(S4) - B4)
    along, to = G5 - foot, held - I5
    along, length = along / np.linalg.norm(along), float(np.linalg.norm(to))
    pull = spring_tension(spring, length) * to / length
    rest, moment = force - pull, torque - np.cross(I5, pull)  # the spring counts once [eq. 37]
    push = moment[0] / np.cross(G5, along)[0]  # the joint gives no torque about x
    actuator = push * along + np.array([0.5 * rest[0], 0.0, 0.0])
    return Held(float(push), actuator, rest - actuator)


def forces_of(
    chain: Chain,
    positions: Mapping[str, float],
    velocities: Mapping[str, float],
    accelerations: Mapping[str, float],
    springs: Springs = SPRINGS,
) -> tuple[Loads, Held, Held]:
    """Inverse dynamics of the whole robot: loads of the main bodies, and how bodies 4 and 5 are held."""
    loads = chain.loads(positions, velocities, accelerations)
    lower = lower_loop(positions["4"], loads.force["4"], springs)
    return loads, lower, upper_loop(positions["5"], loads.force["5"], loads.torque["5"], springs["5s"])

"""The recursion of [004] for main bodies, as printed, in plain NumPy: coupler is compared with it.

One state at a time. Misprints are corrected as in docs/papers.md, and gravity is added. Names are the paper's: JT and
JO are a joint's kind and axis; A, B, C the points of a body where its predecessor and its successors are joined, and
its centre of mass. Positions of prismatic joints count along their axes, so that d₄ = −q₄. Nothing here uses coupler's
own dynamics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coupler.robots.charmie import ARM, ARMS, JAWS, JOINTS, TURNED, WEIGHTS

GRAVITY = np.array([0.0, 0.0, -9.81])
AXES = {"x": np.eye(3)[0], "y": np.eye(3)[1], "z": np.eye(3)[2]}


def zxz_euler(first: float, second: float, third: float) -> np.ndarray:
    """Eq. 17, with s₁ s₂ in its corner."""
    c1, c2, c3 = np.cos([first, second, third])
    s1, s2, s3 = np.sin([first, second, third])
    return np.array(
        [
            [c1 * c3 - s1 * c2 * s3, -c1 * s3 - s1 * c2 * c3, s1 * s2],
            [s1 * c3 + c1 * c2 * s3, c1 * c2 * c3 - s1 * s3, -c1 * s2],
            [s2 * s3, s2 * c3, c2],
        ]
    )


@dataclass(frozen=True)
class Link:
    """A row of Tables 2 to 4: the joint before a body, where it is on its predecessor, and what the body weighs.

    Attributes:
        JT, JO: P, R or F, and x, y or z.
        before: the body that precedes it, or "".
        B: 3, the point B of that body, from its origin, m.
        mass, C, inertia: kg, 3 from the body's own origin in m, 3 × 3 in kg m².
        turned: Euler angles of a fixed joint.
    """

    JT: str
    JO: str
    before: str
    B: np.ndarray
    mass: float
    C: np.ndarray
    inertia: np.ndarray
    turned: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def rotation(self, position: float) -> np.ndarray:
        """R of the body in the axes of its predecessor. [eq. 18, with a case for fixed joints]"""
        if self.JT != "R":
            return zxz_euler(*self.turned)
        angles = {"x": (0.0, position, 0.0), "y": (np.pi / 2, position, -np.pi / 2), "z": (0.0, 0.0, position)}
        return zxz_euler(*angles[self.JO])


@dataclass
class Loads:
    """The results of the recursion of eq. 28 to 34, by body, in the body's own axes.

    Attributes:
        omega, alpha, at_A, at_C: angular velocity and acceleration, linear accelerations of O and C less gravity.
        force, torque: 3 each, what all its predecessors together transmit to it, the torque about point O, N and N m.
    """

    omega: dict[str, np.ndarray] = field(default_factory=dict)
    alpha: dict[str, np.ndarray] = field(default_factory=dict)
    at_A: dict[str, np.ndarray] = field(default_factory=dict)
    at_C: dict[str, np.ndarray] = field(default_factory=dict)
    force: dict[str, np.ndarray] = field(default_factory=dict)
    torque: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Chain:
    """A tree of main bodies; each is listed after its predecessor. Positions are by body, along the joint's axis."""

    links: Mapping[str, Link]

    def placed(self, positions: Mapping[str, float]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """R₀ᵢ and Oᵢ of each body in the world. [eq. 15 to 19, with A″ of the body itself in the last]"""
        results: dict[str, tuple[np.ndarray, np.ndarray]] = {"": (np.eye(3), np.zeros(3))}
        for name, link in self.links.items():
            before, O_before = results[link.before]
            shift = positions[name] * AXES[link.JO] if link.JT == "P" else np.zeros(3)
            R = link.rotation(positions.get(name, 0.0))
            results[name] = before @ R, O_before + before @ (link.B + R @ shift)
        return results

    def loads(
        self, positions: Mapping[str, float], velocities: Mapping[str, float], accelerations: Mapping[str, float]
    ) -> Loads:
        """Newton and Euler, outwards and inwards. [eq. 28 to 34]

        Bodies are taken about their origins O rather than about A, which a prismatic joint moves: eq. 31 with r_AO.
        """
        results, zero = Loads(), np.zeros(3)
        R: dict[str, np.ndarray] = {}
        state = {"": (zero, zero, -GRAVITY)}  # the predecessor of the first body, in the world
        for name, link in self.links.items():
            omega, alpha, a = state[link.before]
            R[name] = link.rotation(positions.get(name, 0.0))
            at_B = a + np.cross(alpha, link.B) + np.cross(omega, np.cross(omega, link.B))
            w, dw, p = R[name].T @ omega, R[name].T @ alpha, R[name].T @ at_B
            if link.JT == "R":
                z, rate = AXES[link.JO], velocities[name]
                dw = dw + accelerations[name] * z + rate * np.cross(w, z)  # eq. 30
                w = w + rate * z  # eq. 29
            elif link.JT == "P":
                z, d, rate = AXES[link.JO], positions[name], velocities[name]
                r = d * z
                p = p + accelerations[name] * z + np.cross(dw, r) + np.cross(w, np.cross(w, r))  # eq. 31
                p = p + 2.0 * rate * np.cross(w, z)
            state[name] = w, dw, p
            results.omega[name], results.alpha[name], results.at_A[name] = w, dw, p
            results.at_C[name] = p + np.cross(dw, link.C) + np.cross(w, np.cross(w, link.C))  # eq. 32
        carried = dict.fromkeys(self.links, (zero, zero))  # by successors: force, and torque about O
        for name in reversed(list(self.links)):
            link, (f, mu) = self.links[name], carried[name]
            w, dw, inertia = results.omega[name], results.alpha[name], link.inertia
            force = link.mass * results.at_C[name] + f  # eq. 33
            torque = inertia @ dw + np.cross(w, inertia @ w) + mu  # eq. 34, about O
            torque = torque + np.cross(link.C, link.mass * results.at_C[name])
            results.force[name], results.torque[name] = force, torque
            if link.before:
                shift = positions[name] * AXES[link.JO] if link.JT == "P" else zero
                at = link.B + R[name] @ shift
                F, M = R[name] @ force, R[name] @ torque
                f, mu = carried[link.before]
                carried[link.before] = f + F, mu + M + np.cross(at, F)
        return results


def charmie_chain() -> Chain:
    """The main bodies of CHARMIE. [Tables 2 to 4]"""
    links: dict[str, Link] = {}

    def add(name: str, row: Any, weight: Any) -> None:
        kind, axis, carrier, at = row
        mass, centre, (xx, yy, zz, xy, xz, yz) = weight
        inertia = 1e-6 * np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        JO = "xyz"[int(np.argmax(axis))] if axis else ""
        before = "" if carrier == "ground" else carrier
        turned = TURNED.get(name, (0.0, 0.0, 0.0))
        links[name] = Link(kind, JO, before, np.array(at) / 1e3, mass, np.array(centre) / 1e3, inertia, turned)

    for name, row in JOINTS.items():
        add(name, row, WEIGHTS[name.rstrip("ab")])
    for side in ARMS:
        for number, (kind, axis, carrier, at) in ARM.items():
            add(number + side, (kind, axis, carrier + side, at), WEIGHTS[number])
        for jaw in (1, 2):
            kind, axis, carrier, at = JAWS
            add(f"13{side}{jaw}", (kind, axis, carrier + side, at), WEIGHTS[f"13_{jaw}"])
    return Chain(links)

"""Equalities, tendons and keyframes of a compiled model in MJCF: what binds bodies beside their joints.

MuJoCo keeps equalities softly, by springs that are as stiff as they are set. Here they are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.io.mjcf.files import Files
from coupler.io.mjcf.tree import EQUALITIES, FREE, Names, Off, Parts, fresh, pose
from coupler.mechanisms import linear, polynomial
from coupler.model import Fixed, RobotBuilder, Spherical
from coupler.model.words import counted, listed
from coupler.rotation import matrix_from_quaternion
from coupler.spatial import Transform

__all__ = ["Bonds", "add_keyframes", "add_tendons"]

_CONNECT, _WELD, _JOINT, _TENDON = range(4)  # MuJoCo's types of equalities that can be kept here
_SITE = 6  # MuJoCo's type of an object
_WRAP_JOINT, _WRAP_SITE = 1, 3  # and of what a tendon runs over


@dataclass(frozen=True, eq=False)
class _Ends:
    """Two bodies by their numbers, and where they are held together on each."""

    first: int
    second: int
    at: Transform
    meets: Transform


class Bonds:
    """The equalities of a model.

    Attributes:
        locked: positions at which they hold joints.
        hung: for free joints whose bodies they weld to others, the body that carries theirs, and where on the two.
    """

    def __init__(self, model: Any, files: Files, names: Names, off: bool, floating: bool) -> None:
        self._model, self._files, self._names, self._floating = model, files, names, floating
        self.untold: list[str] = []
        self._equalities = [] if off else [i for i in range(model.neq) if model.eq_active0[i]]
        idle = model.neq - len(self._equalities)
        self.untold += [f"{counted(idle, 'equality', 'equalities')} switched off"] if idle else []
        self.locked: dict[int, float] = {}
        self.hung: dict[int, tuple[str, Transform, Transform]] = {}
        self._lock()
        sums = {i: self._sum(i) for i in self._equalities if model.eq_type[i] == _TENDON}
        self._sums = {i: found for i, found in sums.items() if found is not None}
        other = [i for i in self._equalities if model.eq_type[i] > _JOINT and i not in self._sums]
        self.untold += [f"{counted(len(other), 'equality', 'equalities')} of tendons or flexes"] if other else []
        self._equalities = [i for i in self._equalities if i not in other]
        self._hang()

    def _where(self, i: int) -> Any:
        return self._files.where(EQUALITIES[self._model.eq_type[i]], self._model.equality(i).name)

    # Joints held at a position

    def _relation(self, i: int) -> tuple[int, int, np.ndarray]:
        """The dependent joint, the other, or -1, and the polynomial in the other's absolute position.

        The file's is y − y₀ = c₀ + c₁ (x − x₀) + ..., about the positions in which the model is described.
        """
        model = self._model
        y, x, c = int(model.eq_obj1id[i]), int(model.eq_obj2id[i]), np.trim_zeros(model.eq_data[i, :5], "b")
        y0 = model.qpos0[model.jnt_qposadr[y]]
        if x < 0 or len(c) < 2:
            return y, -1, np.array([y0 + c[:1].sum()])
        x0 = model.qpos0[model.jnt_qposadr[x]]
        shifted = np.polynomial.Polynomial(c)(np.polynomial.Polynomial([-x0, 1.0])).coef
        shifted[0] += y0
        return y, x, shifted

    def _lock(self) -> None:
        """Finds joints that cannot move: by an equality of their own, or with others that cannot."""
        waiting = [i for i in self._equalities if self._model.eq_type[i] == _JOINT]
        found = True
        while found:
            found = False
            for i in list(waiting):
                y, x, c = self._relation(i)
                if x < 0 or x in self.locked:
                    self._hold(i, y, float(np.polynomial.polynomial.polyval(self.locked.get(x, 0.0), c)))
                elif y in self.locked:
                    self._hold(i, x, self._solved(i, x, c - self.locked[y] * (np.arange(len(c)) == 0)))
                else:
                    continue
                waiting.remove(i)
                self._equalities.remove(i)
                found = True

    def _hold(self, i: int, joint: int, position: float) -> None:
        if abs(self.locked.setdefault(joint, position) - position) > 1e-9:
            raise self._where(i).error(
                f"it holds joint {self._names.joints[joint]!r} at {position:g}, and another equality at "
                f"{self.locked[joint]:g}"
            )

    def _solved(self, i: int, joint: int, c: np.ndarray) -> float:
        """The position nearest to that of the file at which a polynomial vanishes."""
        if len(c) == 2:
            return float(-c[0] / c[1])
        roots = np.polynomial.polynomial.polyroots(c)
        real = roots.real[np.abs(roots.imag) < 1e-9]
        if not len(real):
            raise self._where(i).error(f"no position of joint {self._names.joints[joint]!r} satisfies it")
        return float(min(real, key=lambda x: abs(x - self._model.qpos0[self._model.jnt_qposadr[joint]])))

    @property
    def summed(self) -> frozenset[int]:
        """The tendons whose lengths are kept as sums of joint positions."""
        model, kept = self._model, [i for i in self._equalities if i in self._sums]
        return frozenset(int(end[i]) for i in kept for end in (model.eq_obj1id, model.eq_obj2id))

    # Sums of joint positions

    def _sum(self, i: int) -> tuple[dict[int, float], float] | None:
        """Factors of joints and what they add up to, where an equality of tendons says no more than that."""
        model, factors, total = self._model, dict[int, float](), 0.0
        constant, slope, *others = model.eq_data[i, :5]
        ends = [(int(model.eq_obj1id[i]), 1.0), (int(model.eq_obj2id[i]), -slope)]
        for tendon, scale in ends if ends[1][0] >= 0 else ends[:1]:
            own = slice(model.tendon_adr[tendon], model.tendon_adr[tendon] + model.tendon_num[tendon])
            if (model.wrap_type[own] != _WRAP_JOINT).any():
                return None
            for joint, factor in zip(model.wrap_objid[own].tolist(), model.wrap_prm[own], strict=True):
                factors[joint] = factors.get(joint, 0.0) + scale * float(factor)
                total += scale * float(factor) * model.qpos0[model.jnt_qposadr[joint]]
        moving = {joint: factor for joint, factor in factors.items() if factor}
        if any(others) or len(moving) < 2 or self.locked.keys() & moving.keys():
            return None
        return moving, float(total + constant)

    def _add_sum(self, builder: RobotBuilder, name: str, factors: dict[int, float], total: float) -> None:
        """The first joint from the others; all of them related, where that one has been given already."""
        joints = [self._names.joints[joint] for joint in factors]
        first, *rest = factors.values()
        if joints[0] in self._given:
            row = np.array([first, *rest])
            builder.couple(name, joints, lambda q: np.array([row @ q - total]))
            return
        self._given.add(joints[0])
        G = np.vstack([-np.array(rest) / first, np.eye(len(rest))])
        builder.couple(name, joints, linear(G, [total / first, *np.zeros(len(rest))]), joints[1:])

    # Bodies held together

    def _ends(self, i: int) -> _Ends:
        """Where a connect or a weld holds its bodies."""
        model, data = self._model, self._model.eq_data[i]
        one, two = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
        if model.eq_objtype[i] == _SITE:
            at, meets = (pose(model.site_pos[site], model.site_quat[site]) for site in (one, two))
            return _Ends(int(model.site_bodyid[one]), int(model.site_bodyid[two]), at, meets)
        if model.eq_type[i] == _CONNECT:
            return _Ends(one, two, Transform.translation(data[:3].copy()), Transform.translation(data[3:6].copy()))
        return _Ends(one, two, pose(data[3:6], data[6:10]), Transform.translation(data[:3].copy()))

    def _welds(self, i: int) -> bool:
        """Whether an equality holds orientations, too; MuJoCo scales their part of the error."""
        return bool(self._model.eq_type[i] == _WELD and self._model.eq_data[i, 10] != 0.0)

    def _hang(self) -> None:
        """Finds floating bodies that a weld holds on another: that is what carries them."""
        model, names = self._model, self._names
        carrier = list(model.body_parentid)  # with what has been hung so far
        for i in list(self._equalities):
            ends = self._ends(i) if self._welds(i) else None
            if ends is None:
                continue
            for body, other, at, meets in (
                (ends.second, ends.first, ends.at, ends.meets),
                (ends.first, ends.second, ends.meets, ends.at),
            ):
                joint = int(model.body_jntadr[body])
                floats = body and joint >= 0 and model.jnt_type[joint] == FREE and joint not in self.hung
                if floats and not _carries(carrier, body, other):
                    self.hung[joint] = names.bodies[other], at, meets
                    carrier[body] = other
                    self._equalities.remove(i)
                    break
        self._carrier = carrier

    def _link(self, body: int) -> int:
        """The first of the bodies that are one with this one."""
        model = self._model
        while body:
            first = int(model.body_jntadr[body])
            joints = range(first, first + model.body_jntnum[body])
            loose = self._floating and not joints and model.body_parentid[body] == 0
            if loose or any(j not in self.locked and j not in self.hung for j in joints):
                return body
            body = self._carrier[body]
        return 0

    def add(self, builder: RobotBuilder) -> None:
        """Tells the builder those that are left, and what became of the others."""
        names = self._names
        if self.locked:
            held = listed(names.joints[j] for j in sorted(self.locked))
            builder.warn(f"{counted(len(self.locked), 'joint')} made fixed, since equalities hold them: {held}")
        for j, (carrier, _, _) in self.hung.items():
            builder.warn(f"free joint {names.joints[j]!r} is made fixed, since a weld holds its body on {carrier!r}")
        self._given: set[str] = set()  # joints whose positions couplings give
        for i in self._equalities:
            with self._where(i).blamed():
                if i in self._sums:
                    self._add_sum(builder, names.equalities[i], *self._sums[i])
                    continue
                if self._model.eq_type[i] == _JOINT:
                    y, x, c = self._relation(i)
                    self._given.add(names.joints[y])
                    function = linear([[1.0], [c[1]]], [0.0, c[0]]) if len(c) == 2 else polynomial(c.tolist())
                    builder.couple(names.equalities[i], [names.joints[x], names.joints[y]], function, [names.joints[x]])
                    continue
                ends = self._ends(i)
                first, second = names.bodies[ends.first], names.bodies[ends.second]
                name = names.equalities[i]
                if self._link(ends.first) == self._link(ends.second):
                    builder.warn(f"equality {name!r} is left out: {first!r} and {second!r} are rigidly attached")
                else:
                    kind = Fixed() if self._welds(i) else Spherical()
                    builder.loop(name, kind, first, second, ends.at, ends.meets)


def _carries(carrier: list[int], body: int, other: int) -> bool:
    """Whether a body carries another, or is it."""
    while other and other != body:
        other = carrier[other]
    return other == body


def add_tendons(
    model: Any, files: Files, names: Names, builder: RobotBuilder, off: Off, sums: frozenset[int]
) -> list[str]:
    """Tells the builder tendons that are springs between two points; what of tendons is left out.

    Tendons that are sums of joints which an equality keeps are no more than that, unless they pull as well.
    """
    given, other, partly = [model.tendon(i).name for i in range(model.ntendon)], 0, 0
    taken = set(given)
    for i, name in enumerate(given):
        own = slice(model.tendon_adr[i], model.tendon_adr[i] + model.tendon_num[i])
        sites = model.wrap_objid[own]
        stiffness = 0.0 if off("SPRING") else float(model.tendon_stiffness[i])
        damping = 0.0 if off("DAMPER") else float(model.tendon_damping[i])
        least, most = model.tendon_lengthspring[i]
        uneven = [model.tendon_stiffnesspoly[i], model.tendon_dampingpoly[i], model.tendon_springyield[i]]
        straight = len(sites) == 2 and (model.wrap_type[own] == _WRAP_SITE).all()
        partly_limited = model.tendon_limited[i] or model.tendon_frictionloss[i] or model.tendon_armature[i]
        if i in sums and not (stiffness or damping or partly_limited):
            continue
        if not straight or not (stiffness or damping) or (stiffness and least != most) or any(map(np.any, uneven)):
            other += 1
            continue
        partly += bool(partly_limited)
        first, second = (names.bodies[model.site_bodyid[site]] for site in sites)
        if first == second:
            builder.warn(f"tendon {name or i + 1!r} is left out: both its ends are on {first!r}")
            continue
        ends, free = model.site_pos[sites], float(least) if stiffness else 0.0
        with files.where("spatial", name).blamed():
            name = name or fresh(f"tendon_{i + 1}", taken)
            builder.spring(name, first, second, *ends, stiffness=stiffness, free_length=free, damping=damping)
    untold = [f"{counted(other, 'tendon')} other than a spring between two sites"] if other else []
    return untold + ([f"limit, friction or armature of {counted(partly, 'such spring')}"] if partly else [])


def add_keyframes(model: Any, parts: Parts, builder: RobotBuilder) -> list[str]:
    """Tells the builder the named states; what of them is left out."""
    given = [model.key(i).name for i in range(model.nkey)]
    taken, fixed = set(given), {*parts.locked, *parts.hung}
    for i, name in enumerate(given):
        positions, velocities = dict[str, Any](), dict[str, Any]()
        for j in (j for j in range(model.njnt) if j not in fixed):
            nq, nv = ((7, 6), (4, 3), (1, 1), (1, 1))[model.jnt_type[j]]
            adr, dof = model.jnt_qposadr[j], model.jnt_dofadr[j]
            p, w = model.key_qpos[i, adr : adr + nq].copy(), model.key_qvel[i, dof : dof + nv].copy()
            if nv == 6:  # linear in the world's axes there, angular first and in the body's here
                w = np.concatenate([w[3:], matrix_from_quaternion(p[3:]).T @ w[:3]])
            positions[parts.names.joints[j]] = p if nq > 1 else p[0]
            velocities[parts.names.joints[j]] = w if nv > 1 else w[0]
        moving = any(np.any(w) for w in velocities.values())
        builder.keyframe(name or fresh(f"key_{i + 1}", taken), positions, velocities if moving else None)
    told = int(sum(bool(model.key_ctrl[i].any() or model.key_act[i].any()) for i in range(model.nkey)))
    return [f"ctrl or act of {counted(told, 'keyframe')}"] if told else []

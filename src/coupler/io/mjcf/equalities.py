"""Equalities of a compiled model in MJCF: what constrains bodies beside their joints.

MuJoCo enforces equalities softly, by springs of the given stiffness. Here they are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.io.dependences import solved_for
from coupler.io.mjcf.compilation import Compiled
from coupler.io.mjcf.files import Files
from coupler.io.mjcf.names import EQUALITIES, PartNames
from coupler.io.mjcf.tree import FREE, pose
from coupler.mechanisms import linear, polynomial
from coupler.model import Fixed, RobotBuilder, Spherical
from coupler.model.wording import counted, listed
from coupler.spatial import Transform

_CONNECT, _WELD, _JOINT, _TENDON = range(4)  # MuJoCo's types of equalities that can be kept exactly
_SITE = 6  # MuJoCo's type of an object
_SAME = 1e-9  # m or rad: two equalities may hold a joint at positions that differ by less, since files round
_REAL = 1e-9  # imaginary parts below this are rounding errors of the roots of a polynomial


@dataclass(frozen=True, eq=False)
class _Ends:
    """Two bodies by number, and the frames on them that are held together."""

    first: int
    second: int
    at: Transform
    meets: Transform


class Equalities:
    """The equalities of a model.

    Attributes:
        left_out: descriptions of the equalities that are not modelled.
        locked: positions of the joints that equalities hold fixed, by joint number.
        hung: for each free joint of a body that is welded to another: the other body, and the weld's frame on both.
    """

    def __init__(self, model: Compiled, files: Files, names: PartNames, off: bool, floating: bool) -> None:
        self._model, self._files, self._names, self._floating = model, files, names, floating
        self.left_out: list[str] = []
        self._equalities = [] if off else [i for i in range(model.neq) if model.eq_active0[i]]
        idle = model.neq - len(self._equalities)
        self.left_out += [f"{counted(idle, 'equality', 'equalities')} switched off"] if idle else []
        self.locked: dict[int, float] = {}
        self.hung: dict[int, tuple[str, Transform, Transform]] = {}
        self._lock()
        sums = {i: self._sum(i) for i in self._equalities if model.eq_type[i] == _TENDON}
        self._sums = {i: joint_sum for i, joint_sum in sums.items() if joint_sum is not None}
        other = [i for i in self._equalities if model.eq_type[i] > _JOINT and i not in self._sums]
        self.left_out += [f"{counted(len(other), 'equality', 'equalities')} of tendons or flexes"] if other else []
        self._equalities = [i for i in self._equalities if i not in other]
        self._hang()

    def _where(self, i: int) -> Any:
        return self._files.where(EQUALITIES[self._model.eq_type[i]], self._model.names["equality"][i])

    # Joints that are held at a position

    def _relation(self, i: int) -> tuple[int, int, np.ndarray]:
        """The dependent joint, the joint it depends on (or −1), and the polynomial in that joint's absolute position.

        The file has y − y₀ = c₀ + c₁ (x − x₀) + ..., relative to the positions in which the model is described.
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
        """Finds joints that cannot move because an equality fixes them, alone or through another such joint."""
        pending = [i for i in self._equalities if self._model.eq_type[i] == _JOINT]
        progress = True
        while progress:
            progress = False
            for i in list(pending):
                y, x, c = self._relation(i)
                if x < 0 or x in self.locked:
                    self._hold(i, y, float(np.polynomial.polynomial.polyval(self.locked.get(x, 0.0), c)))
                elif y in self.locked:
                    self._hold(i, x, self._solved(i, x, c - self.locked[y] * (np.arange(len(c)) == 0)))
                else:
                    continue
                pending.remove(i)
                self._equalities.remove(i)
                progress = True

    def _hold(self, i: int, joint: int, position: float) -> None:
        if abs(self.locked.setdefault(joint, position) - position) > _SAME:
            raise self._where(i).error(
                f"it holds joint {self._names.joints[joint]!r} at {position:g}, and another equality at "
                f"{self.locked[joint]:g}"
            )

    def _solved(self, i: int, joint: int, c: np.ndarray) -> float:
        """The root of a polynomial nearest to the joint's position in the file."""
        if len(c) == 2:
            return float(-c[0] / c[1])
        roots = np.polynomial.polynomial.polyroots(c)
        real = roots.real[np.abs(roots.imag) < _REAL]
        if not len(real):
            raise self._where(i).error(f"no position of joint {self._names.joints[joint]!r} satisfies it")
        return float(min(real, key=lambda x: abs(x - self._model.qpos0[self._model.jnt_qposadr[joint]])))

    @property
    def summed(self) -> frozenset[int]:
        """The tendons whose lengths equalities keep as sums of joint positions."""
        model, kept = self._model, [i for i in self._equalities if i in self._sums]
        return frozenset(int(end[i]) for i in kept for end in (model.eq_obj1id, model.eq_obj2id))

    # Sums of joint positions

    def _sum(self, i: int) -> tuple[dict[int, float], float] | None:
        """An equality of tendons as Σ factor × position = total; None if it is no such sum of joint positions."""
        model, factors, total = self._model, dict[int, float](), 0.0
        constant, slope, *others = model.eq_data[i, :5]
        ends = [(int(model.eq_obj1id[i]), 1.0), (int(model.eq_obj2id[i]), -slope)]
        for tendon, scale in ends if ends[1][0] >= 0 else ends[:1]:
            terms = model.joint_sum(tendon)
            if terms is None:
                return None
            for joint, factor in terms:
                factors[joint] = factors.get(joint, 0.0) + scale * factor
                total += scale * factor * model.qpos0[model.jnt_qposadr[joint]]
        moving = {joint: factor for joint, factor in factors.items() if factor}
        if any(others) or len(moving) < 2 or self.locked.keys() & moving.keys():
            return None
        return moving, float(total + constant)

    def _add_sum(self, builder: RobotBuilder, name: str, factors: dict[int, float], total: float) -> None:
        """Couples the first joint to the others; if that joint depends on others already, relates all joints by a φ."""
        row = {self._names.joints[joint]: factor for joint, factor in factors.items()}
        first = next(iter(row))
        if first in self._dependent:
            every = np.array(list(row.values()))
            builder.couple(name, list(row), lambda q: np.array([every @ q - total]))
            return
        self._dependent.add(first)
        builder.couple(name, *solved_for(first, row, total))

    # Bodies that are held together

    def _ends(self, i: int) -> _Ends:
        """The frames at which a connect or a weld holds its bodies."""
        model, data = self._model, self._model.eq_data[i]
        first, second = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
        if model.eq_objtype[i] == _SITE:
            at, meets = (pose(model.site_pos[site], model.site_quat[site]) for site in (first, second))
            return _Ends(int(model.site_bodyid[first]), int(model.site_bodyid[second]), at, meets)
        if model.eq_type[i] == _CONNECT:
            return _Ends(first, second, Transform.translation(data[:3].copy()), Transform.translation(data[3:6].copy()))
        return _Ends(first, second, pose(data[3:6], data[6:10]), Transform.translation(data[:3].copy()))

    def _welds(self, i: int) -> bool:
        """Whether an equality also holds orientations; MuJoCo scales that part of the error, possibly to zero."""
        return bool(self._model.eq_type[i] == _WELD and self._model.eq_data[i, 10] != 0.0)

    def _hang(self) -> None:
        """Finds floating bodies that a weld holds on another body, which then carries them."""
        model, names = self._model, self._names
        carrier = list(model.body_parentid)  # updated by what has been hung so far
        for i in list(self._equalities):
            ends = self._ends(i) if self._welds(i) else None
            if ends is None:
                continue
            for body, other, at, meets in (
                (ends.second, ends.first, ends.at, ends.meets),
                (ends.first, ends.second, ends.meets, ends.at),
            ):
                joint = int(model.body_jntadr[body])
                is_free = body and joint >= 0 and model.jnt_type[joint] == FREE and joint not in self.hung
                if is_free and not _carries(carrier, body, other):
                    self.hung[joint] = names.bodies[other], at, meets
                    carrier[body] = other
                    self._equalities.remove(i)
                    break
        self._carrier = carrier

    def _link(self, body: int) -> int:
        """The first of the bodies to which this one is rigidly attached."""
        model = self._model
        while body:
            joints = model.joints_of(body)
            floating = self._floating and not joints and model.body_parentid[body] == 0
            if floating or any(j not in self.locked and j not in self.hung for j in joints):
                return body
            body = self._carrier[body]
        return 0

    def add(self, builder: RobotBuilder) -> None:
        """Adds loops and couplings to the builder, and warns of joints that became fixed."""
        names = self._names
        if self.locked:
            held = listed(names.joints[j] for j in sorted(self.locked))
            are = "is" if len(self.locked) == 1 else "are"
            builder.warn(f"equalities hold {counted(len(self.locked), 'joint')}, which {are} made fixed: {held}")
        if len(self.hung) == 1:
            ((j, (carrier, _, _)),) = self.hung.items()
            builder.warn(f"free joint {names.joints[j]!r} is made fixed, since a weld holds its body on {carrier!r}")
        elif self.hung:
            held = listed(names.joints[j] for j in self.hung)
            builder.warn(f"{len(self.hung)} free joints are made fixed, since welds hold their bodies: {held}")
        attached: list[str] = []
        self._dependent: set[str] = set()  # joints whose positions couplings give
        for i in self._equalities:
            with self._where(i).blamed():
                if i in self._sums:
                    self._add_sum(builder, names.equalities[i], *self._sums[i])
                    continue
                if self._model.eq_type[i] == _JOINT:
                    y, x, c = self._relation(i)
                    self._dependent.add(names.joints[y])
                    function = linear([[1.0], [c[1]]], [0.0, c[0]]) if len(c) == 2 else polynomial(c.tolist())
                    builder.couple(names.equalities[i], [names.joints[x], names.joints[y]], function, [names.joints[x]])
                    continue
                ends = self._ends(i)
                first, second = names.bodies[ends.first], names.bodies[ends.second]
                name = names.equalities[i]
                if self._link(ends.first) == self._link(ends.second):
                    attached.append(f"{name} of {first} and {second}")
                else:
                    kind = Fixed() if self._welds(i) else Spherical()
                    builder.loop(name, kind, first, second, ends.at, ends.meets)
        if attached:
            builder.warn(
                f"{counted(len(attached), 'equality', 'equalities')} left out, since the bodies are rigidly attached "
                f"already: {listed(attached)}"
            )


def _carries(carrier: list[int], body: int, other: int) -> bool:
    """Whether a body is the carrier, or is carried by it, directly or through others."""
    while other and other != body:
        other = carrier[other]
    return other == body

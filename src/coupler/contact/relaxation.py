"""Sweeps over the blocks of a contact problem, as steps of a program: each block in turn obeys its law.

What `bisection` does in NumPy for one state, for lanes and threads: w = A λ + b of a block with all impulses as they
are, its law's next impulses (see laws.py), and so on until no block changes by more than a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coupler.contact import laws
from coupler.contact.cone_update import ConeBlock, cone_at_rest, cone_sliding, cone_update
from coupler.graph import Buffer, Builder, Slot, View, Window, constants, fields, symmetric

__all__ = ["Blocks", "Relaxation"]

_BLOCK = {"A": symmetric(3), "inverse": symmetric(3), "normal_step": (), "tangent_step": (), "mobility": ()}
_FEW = 24  # contacts that are spelled out one by one; more of them are rows of a table, or code would grow
_FAR = 1e30  # a change that is above all tolerances


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of a problem, those of a kind together.

    Attributes:
        friction: µ of each contact; their rows, three each, come first.
        bounds: of each joint that has limits or dry friction, the largest impulse of friction, N s or N m s; their rows
            come last.
    """

    friction: Sequence[float]
    bounds: Sequence[float] = ()

    @property
    def rows(self) -> int:
        return 3 * len(self.friction) + len(self.bounds)

    def without(self, joints: int) -> Blocks:
        """The same without so many joints, the last ones."""
        return replace(self, bounds=self.bounds[: len(self.bounds) - joints])


@dataclass(frozen=True, eq=False)
class _Law:
    """Blocks with the same law.

    Attributes:
        first: the first row of each block.
        width: rows of a block.
        known: what the law needs to know.
        residual: how far impulses are from the law, from what is known, impulses and velocities.
    """

    first: np.ndarray
    width: int
    known: Window
    residual: Callable[[View, Any, Any], Any]


class Relaxation:
    """A contact problem in buffers of a program, and the steps that solve it.

    Attributes:
        A: rows × rows.
        b: rows.
        impulses: λ, the solution; before it, what to start from.
        low, high: of each joint, the velocities that take it to its limits within the step.
    """

    def __init__(self, builder: Builder, blocks: Blocks, within: Relaxation | None = None) -> None:
        """Args: a program, the blocks, and a larger problem of which these are the first ones, if there is one."""
        n, joints = blocks.rows, len(blocks.bounds)
        self._builder, self._rows, self._name = builder, n, "part_" if within else ""
        self.impulses, self.b, self.low, self.high = (
            (within.impulses, within.b, within.low, within.high)
            if within
            else (self._scratch(*own) for own in (("impulses", n), ("b", n), ("low", joints), ("high", joints)))
        )
        self.A, self._next = self._scratch("A", n * n), self._scratch("next", n)
        self._change, self._velocity, self._slides = (
            self._scratch(*own) for own in (("change", 1), ("velocity", 3), ("slides", 1))
        )
        self._contacts = builder.records(f"{self._name}contact", len(blocks.friction), **_BLOCK)[:]
        self._laws = [law for law in self._described(blocks) if len(law.first)]

    def _scratch(self, name: str, size: int) -> Buffer:
        return self._builder.scratch(f"{self._name}{name}", size)

    def _described(self, blocks: Blocks) -> list[_Law]:
        cones, joints = np.split(np.arange(blocks.rows), [3 * len(blocks.friction)])
        cone = self._contacts | fields(friction=constants(np.array(blocks.friction, float)))
        sides = fields(low=self.low.at(range(len(joints))), high=self.high.at(range(len(joints))))
        bound = fields(bound=constants(np.array(blocks.bounds, float)), a=self.A.at(joints * (self._rows + 1), 1))
        return [
            _Law(cones[::3], 3, cone, _cone_residual),
            _Law(joints, 1, sides | bound, _joint_residual),
        ]

    def solve(self, tolerance: float, most: int, residual: Buffer, sweeps: Buffer) -> None:
        """Writes the steps from A, b and impulses to start from, to impulses.

        Args:
            tolerance: in the last sweep no impulse changes a velocity of its own block by more, m/s.
            most: how many sweeps there are at most.
            residual: 1, how far the impulses are from the laws, m/s (see residuals.py).
            sweeps: 1, how many there were.
        """
        builder, here = self._builder, fields(change=self._change.at(0), sweeps=sweeps.at(0, 1))
        self._prepare()
        builder.loop(_begin, here=here)
        with builder.repeat(until=_settled, at_most=most, here=here | fields(tolerance=constants([tolerance]))):
            builder.loop(_again, here=here)
            self._sweep()
        builder.loop(_no_residual, here=fields(residual=residual.at(0, 1)))
        for law in self._laws:
            total = fields(residual=residual.at([0] * len(law.first), 1))
            builder.loop(_add_residual(law), here=self._seen(law) | total)

    def _prepare(self) -> None:
        """What every sweep needs of the contacts' own blocks, and their impulses within their cones."""
        cones, n = next((law for law in self._laws if law.width == 3), None), self._rows
        if cones is not None:
            rows = {f"row{i}": self.A.at((cones.first + i) * n + cones.first, 3) for i in range(3)}
            self._builder.loop(_describe, here=fields(**rows) | self._contacts)
            self._builder.loop(_admit, here=fields(own=self.impulses.at(cones.first, 3)) | cones.known)

    def _sweep(self) -> None:
        """All blocks, one after the other; each is taken over before the next is looked at."""
        for law in self._laws:
            if law.width == 3 and len(law.first) <= _FEW:
                for k in range(len(law.first)):
                    self._contact(law, k)
                continue
            change = fields(change=self._change.at([0] * len(law.first)), new=self._next.at(law.first, law.width))
            taken = fields(new=self._next.at(law.first, law.width), own=self.impulses.at(law.first, law.width))
            with self._builder.interleave([0, 1] * len(law.first)):
                self._builder.loop(_press if law.width == 3 else _brake, here=self._seen(law) | change)
                self._builder.loop(_take_over, here=taken)

    def _contact(self, law: _Law, k: int) -> None:
        """One of few contacts. What slides costs more than what sticks or opens, and is left out where none does."""
        own = replace(law, first=law.first[k : k + 1], known=_rows_of(law.known, [k]))
        new = fields(new=self._next.at(own.first, 3), w=self._velocity.at(0, 3), slides=self._slides.at(0))
        self._builder.loop(_rest, here=self._seen(own) | new)
        with self._builder.repeat(until=_holds, at_most=1, here=fields(slides=self._slides.at(0))):
            here = own.known | fields(own=self.impulses.at(own.first, 3), new=self._next.at(own.first, 3))
            self._builder.loop(_slide, here=here | fields(w=self._velocity.at(0, 3)))
        taken = fields(new=self._next.at(own.first, 3), own=self.impulses.at(own.first, 3))
        self._builder.loop(_take_contact, here=taken | own.known | fields(change=self._change.at(0)))

    def _seen(self, law: _Law) -> Window:
        n, count = self._rows, len(law.first)
        rows = fields(rows=self.A.at(law.first * n, (law.width, n)), b=self.b.at(law.first, law.width))
        return (
            rows | fields(all=self.impulses.at([0] * count, n), own=self.impulses.at(law.first, law.width)) | law.known
        )


def _rows_of(window: Window, rows: Sequence[int]) -> Window:
    """Some rows of a window."""
    found: dict[str, Any] = {}
    for name, slot in window.fields.items():
        whole = isinstance(slot, Slot)
        found[name] = replace(slot, bases=slot.bases[list(rows)]) if whole else constants(slot.values[list(rows)])
    return fields(**found)


# Kernels of all laws


def _begin(here: View) -> None:
    here.change, here.sweeps = np.array(_FAR), np.zeros(1)


def _settled(here: View) -> Any:
    return here.change <= here.tolerance


def _again(here: View) -> None:
    here.change, here.sweeps = np.array(0.0), here.sweeps + 1.0


def _no_residual(here: View) -> None:
    here.residual = np.zeros(1)


def _take_over(here: View) -> None:
    here.own = here.new


def _add_residual(law: _Law) -> Callable[[View], None]:
    def judging(here: View) -> None:
        error = law.residual(here, here.own, here.rows @ here.all + here.b)
        here.residual = np.maximum(here.residual, np.array([error]))

    return judging


# Contacts


def _describe(here: View) -> None:
    A = np.array([here.row0, here.row1, here.row2])
    block = ConeBlock.of(A)
    here.A, here.inverse, here.mobility = A, block.inverse, np.array(laws.tangential_mobility(A))
    here.normal_step, here.tangent_step = np.array(block.normal_step), np.array(block.tangent_step)


def _admit(here: View) -> None:
    here.own = laws.inside_cone(here.friction, here.own)


def _rest(here: View) -> None:
    w = here.rows @ here.all + here.b
    here.new, slides = cone_at_rest(_block(here), here.friction, here.own, w)
    here.w, here.slides = w, np.where(slides, 1.0, 0.0)


def _holds(here: View) -> Any:
    return here.slides <= 0.0


def _slide(here: View) -> None:
    here.new = cone_sliding(_block(here), here.friction, here.own, here.w)


def _take_contact(here: View) -> None:
    here.change = np.maximum(here.change, _change(here, here.new))
    here.own = here.new


def _press(here: View) -> None:
    new = cone_update(_block(here), here.friction, here.own, here.rows @ here.all + here.b)
    here.new, here.change = new, np.maximum(here.change, _change(here, new))


def _change(here: View, new: Any) -> Any:
    """By how much new impulses of a contact change its velocities."""
    n, x, y = np.abs(new - here.own)
    return np.maximum(here.A[0, 0] * n, here.mobility * np.maximum(x, y))


def _block(here: View) -> ConeBlock:
    return ConeBlock(here.A, here.inverse, here.normal_step, here.tangent_step)


def _cone_residual(here: View, own: Any, w: Any) -> Any:
    return laws.cone_residual(here.A, here.friction, own, w)


# Joints


def _brake(here: View) -> None:
    new, change = _joint_update(here, here.own, here.rows @ here.all + here.b)
    here.new, here.change = np.array([new]), np.maximum(here.change, change)


def _joint_update(here: View, own: Any, w: Any) -> tuple[Any, Any]:
    new = laws.joint_update(here.a[0], here.low, here.high, here.bound, own[0], w[0])
    return new, here.a[0] * np.abs(new - own[0])


def _joint_residual(here: View, own: Any, w: Any) -> Any:
    return _joint_update(here, own, w)[1]

"""Loops: constraints on the joints of the spanning tree, as functions that are zero when they are satisfied.

There are two kinds. A `LoopJoint` holds frames on two bodies together as a joint would, and is a function of the
transform X between them. A `Coupling` relates the positions of tree joints: gears, belts, differentials, racks, or any
function of the user's. Both are plain functions of floats or nodes; Jacobians and biases come from differentiating
them and are never written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from coupler.forks import cached_property
from coupler.model.axes import turn_of
from coupler.model.errors import ModelError
from coupler.model.loop_kind import LoopKind
from coupler.model.numbers import as_array, numbers
from coupler.model.wording import listed
from coupler.spatial import Transform

Array = Any  # an ndarray of floats, or of nodes
_SAME = 1e-12  # rad or m: γ returns independent positions unchanged, up to rounding


@dataclass(frozen=True, eq=False)
class Rod(LoopKind):
    """A massless rod with ball joints at both ends: the two origins keep their distance.

    Attributes:
        length: m.
    """

    directed = False
    _lengths = ("length",)
    length: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", float(numbers("rod: its length", self.length, (), least=0.0)))
        if self.length == 0.0:
            raise ModelError("rod: its length must not be zero; a ball joint holds two points together")

    def residual(self, X: Transform) -> Array:
        return np.array([(X.r @ X.r - self.length**2) / (2.0 * self.length)])


@dataclass(frozen=True, eq=False)
class Held(LoopKind):
    """Two frames that are held together along or about some axes, and move freely otherwise.

    Attributes:
        axes: rows × 6, each a motion that is prevented, angular part first, in the predecessor's frame.
    """

    connects = False
    axes: Any

    def __post_init__(self) -> None:
        given = np.atleast_2d(as_array("held: its axes", self.axes))
        axes = numbers("held: its axes", given, (len(given), 6))
        if not np.linalg.norm(axes, axis=1).all() or np.linalg.matrix_rank(axes) < len(axes):
            raise ModelError(f"held: its axes must be independent of each other, got\n{axes}")
        axes = axes + 0.0  # without negative zeros
        axes.setflags(write=False)
        object.__setattr__(self, "axes", axes)

    def residual(self, X: Transform) -> Array:
        return self.axes @ np.concatenate([turn_of(X.E), X.r])


@dataclass(frozen=True, eq=False)
class LoopJoint:
    """Two frames held together.

    Attributes:
        name: unique in its robot.
        kind: what holds the frames together: a joint, which leaves its own freedoms (`Spherical` for a point on a
            point, `Fixed` for a weld), a `Rod`, or `Held`.
        predecessor, successor: names of the two bodies; one may be "ground".
        predecessor_frame, successor_frame: transforms from each body's frame to the frame that is held.
    """

    name: str
    kind: LoopKind
    predecessor: str
    successor: str
    predecessor_frame: Transform
    successor_frame: Transform

    def __post_init__(self) -> None:
        if not isinstance(self.kind, LoopKind):
            raise ModelError(f"loop {self.name!r}: its kind must be a joint, a Rod or Held, got {self.kind!r}")
        if self.predecessor == self.successor:
            raise ModelError(f"loop {self.name!r}: both its ends are on body {self.predecessor!r}")
        for frame in (self.predecessor_frame, self.successor_frame):
            if not isinstance(frame, Transform):
                raise ModelError(f"loop {self.name!r}: its frames must be Transforms, got {type(frame).__name__}")

    def residual(self, X: Transform) -> Array:
        """φ of its kind, zero when closed, for the transform X from the predecessor's body to the successor's."""
        return self.kind.residual(self.successor_frame @ X @ self.predecessor_frame.inverse())


@dataclass(frozen=True, eq=False)
class Coupling:
    """A relation between the positions of tree joints: a solution γ, or an equation φ.

    Joints have one freedom each, except that the independent joints of a γ may have several. The function takes and
    returns the entries of all positions in one vector, joint after joint.

    Attributes:
        name: unique in its robot.
        joints: names of all joints that it relates, in the order in which γ returns, or φ takes, their positions.
        independent: for a γ, names of the independent joints, in the order in which γ takes their positions; empty for
            a φ.
        function: γ, which returns all positions for the independent ones, or φ, which is zero when all fit together.
        solves: for a γ, names of the loop joints and couplings of which it is the solution.
        sizes: the number of position entries of each joint; one each by default.
    """

    name: str
    joints: tuple[str, ...]
    independent: tuple[str, ...]
    function: Callable[[Array], Array]
    solves: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        what = f"coupling {self.name!r}"
        for field in ("joints", "independent", "solves"):
            names = getattr(self, field)
            if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
                raise ModelError(f"{what}: {field} must be a list of names, got {names!r}")
            if len(set(names)) != len(names):
                raise ModelError(f"{what}: {field} names something twice, in {', '.join(names)}")
            object.__setattr__(self, field, tuple(names))
        unknown = [joint for joint in self.independent if joint not in self.joints]
        if unknown:
            raise ModelError(f"{what}: its independent joint {unknown[0]!r} is not among its joints")
        if len(self.joints) < 2 or len(self.independent) >= len(self.joints):
            raise ModelError(f"{what}: it must relate two joints or more, and leave one dependent")
        object.__setattr__(self, "sizes", tuple(self.sizes) or (1,) * len(self.joints))
        if not callable(self.function):
            raise ModelError(f"{what}: its function must be callable, got {self.function!r}")
        if self.solves and not self.solved:
            raise ModelError(f"{what}: only a solution, with independent joints, can solve {', '.join(self.solves)}")
        if self.solved:
            self._check_solution(what)

    def _check_solution(self, what: str) -> None:
        """Checks that γ returns the positions of all joints, and those of the independent ones unchanged."""
        given = self.entries(self.independent)
        y = 0.1 + 0.01 * np.arange(len(given))
        try:
            with np.errstate(all="ignore"):
                q = np.asarray(self.function(y), dtype=float)
        except Exception as error:
            raise ModelError(f"{what}: its function fails for {len(y)} independent positions: {error}") from error
        if q.shape != (sum(self.sizes),):
            raise ModelError(
                f"{what}: its function gives an array of shape {q.shape}, but must give {sum(self.sizes)} positions, "
                f"those of all its joints in the order {listed(self.joints)}; if it takes the positions of all joints "
                "and gives a residual, which is zero where they fit together, leave `independent` out"
            )
        for joint in self.independent:
            entries = self.entries([joint])
            if np.abs(q[entries] - y[[given.index(entry) for entry in entries]]).max() > _SAME:
                raise ModelError(f"{what}: its function changes the independent joint {joint!r}; is the order right?")

    def entries(self, joints: Iterable[str]) -> list[int]:
        """The places of some joints' positions in the vector of all its joints."""
        return [entry for joint in joints for entry in self._entries_of[joint]]

    @cached_property
    def _entries_of(self) -> dict[str, range]:
        ends = accumulate(self.sizes)
        return {joint: range(end - size, end) for joint, size, end in zip(self.joints, self.sizes, ends, strict=True)}

    @property
    def solved(self) -> bool:
        """Whether the function is a γ."""
        return bool(self.independent)

    def residual(self, positions: Array) -> Array:
        """φ, zero when the positions of all its joints, in order, fit together."""
        if not self.solved:
            return np.atleast_1d(self.function(positions))
        given = self.entries(self.independent)
        computed = self.function(np.array([positions[i] for i in given]))
        return np.array([positions[i] - computed[i] for i in range(sum(self.sizes)) if i not in given])

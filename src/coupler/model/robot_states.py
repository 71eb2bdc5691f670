"""The states of a robot: closed configurations, positions and velocities of all joints by name, constraints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coupler.model.embedding.states import held
from coupler.model.errors import ModelError
from coupler.model.names import names_given
from coupler.model.numbers import batch_of, numbers, shaped
from coupler.model.robot_parts import RobotParts
from coupler.model.subspaces import ClusterJoint, ClusterSubspaces
from coupler.model.tolerances import GIVEN
from coupler.model.wording import clipped, listed


@dataclass(frozen=True, eq=False, repr=False)
class RobotStates(RobotParts):
    """The states of a robot; see `Robot`."""

    # Configurations

    def neutral(self) -> np.ndarray:
        """A closed configuration, (nq,), with joints at or near their neutral positions, away from singularities."""
        if self.given is not None:
            return self._closed_anew(self.given.base.neutral())
        return self.states.neutral[self.embedding.q_index]

    def random_state(self, rng: np.random.Generator | int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """A random closed configuration q, (nq,), and velocity v, (nv,).

        Positions stay away from singularities, and within joint limits where such a configuration can be found.

        Args:
            rng: a generator, or a seed; the same seed gives the same state.
        """
        try:
            rng = np.random.default_rng(rng)
        except (TypeError, ValueError):
            raise ModelError(
                f"random states need a generator or a seed, a whole number from 0 on, got {rng!r}"
            ) from None
        if self.given is not None:
            q, v = self.given.base.random_state(rng)
            return self._closed_anew(q), v
        return self.states.random(rng)[self.embedding.q_index], rng.normal(size=self.nv)

    def _closed_anew(self, q: np.ndarray) -> np.ndarray:
        """Closes, for the given parameters, a configuration that is closed for the numbers of the description."""
        return q if all(self.embedding.explicit) else self.close(q)

    def close(self, q: Any, hold: Iterable[str] = ()) -> np.ndarray:
        """The closed configuration nearest to q, (..., nq), with quaternions of unit length.

        Args:
            q: (..., nq), configurations that may be open.
            hold: names of joints whose positions must not change.

        Raises:
            ModelError: if no closed configuration is found, naming the loop.
        """
        hold = names_given("hold", hold)
        p, weight = self.states.motion.normalize(self._positions(q)), np.ones(self.tree.nv)
        for joint in hold:
            weight[self.tree.velocities(self._link(joint))] = 0.0
        return self.states.closed(p, np.zeros_like(weight), weight, held(hold))[..., self.embedding.q_index]

    def integrate(self, q: Any, v: Any, dt: float = 1.0) -> np.ndarray:
        """The closed configuration after moving from q with the constant velocity v for the time dt, s.

        Independent positions are integrated exactly, and the others follow from them.
        """
        p, v = self._state(q, v)
        self.states.check_regular(p)
        w = self.embedding.velocities(p, v) * float(numbers("dt", dt, ()))
        return self.states.moved(p, w)[..., self.embedding.q_index]

    def difference(self, q0: Any, q1: Any) -> np.ndarray:
        """The velocity that leads from q0 to q1 within 1 s: integrate(q0, difference(q0, q1)) is q1."""
        p0, p1 = self._positions(q0), self._positions(q1)
        batch_of({"q0": p0, "q1": p1})
        return self.states.motion.difference(p0, p1)[..., self.embedding.v_index]

    def check(self, q: Any) -> None:
        """Checks that all loops are closed at q, and that v determines the velocities of all joints there.

        Raises:
            ModelError: naming the loop and, in a batch, the state; at a singularity, which joints to make independent
                instead.
        """
        self.check_closed(q)
        self.states.check_regular(self._positions(q))

    def check_closed(self, q: Any) -> None:
        """Checks that all loops are closed at q and all quaternions of unit length.

        Raises:
            ModelError: naming the loop or joint and, in a batch, the state.
        """
        p = self._positions(q)
        self.states.check_quaternions(p, GIVEN)
        self.states.check_closed(p)

    # All joints by name

    def joint_positions(self, q: Any) -> dict[str, np.ndarray]:
        """The position of every moving joint, dependent ones included: a number, or a vector of its nq entries."""
        return self._by_joint(self._positions(q), self.tree.positions)

    def joint_velocities(self, q: Any, v: Any) -> dict[str, np.ndarray]:
        """The velocity of every moving joint, dependent ones included: a number, or a vector of its nv entries."""
        p, v = self._state(q, v)
        self.states.check_regular(p)
        return self._by_joint(self.embedding.velocities(p, v), self.tree.velocities)

    def pack_q(self, positions: Mapping[str, Any]) -> np.ndarray:
        """The closed configuration q, (..., nq), in which joints have the given positions.

        Joints that are left out start at neutral, and move as far as loops require. Given joints of a loop keep their
        positions, unless all joints of the loop are given and leave it open: then the result is the nearest closed
        configuration.

        Args:
            positions: by joint name, a number, or a vector where the joint has several entries; leading dimensions make
                a batch.
        """
        number = {joint: self._link(joint) for joint in _by_name("positions", positions)}
        return self.states.packed(positions, number)[..., self.embedding.q_index]

    def pack_v(self, velocities: Mapping[str, Any], q: Any = None) -> np.ndarray:
        """The velocity v, (..., nv), in which independent joints have the given velocities and all others are zero.

        Args:
            velocities: by joint name. A dependent joint may be given along with all independent ones of its cluster.
            q: (..., nq), the configuration at which to check given dependent velocities against the independent ones.
        """
        number = {joint: self._link(joint) for joint in _by_name("velocities", velocities)}
        given = {joint: shaped(joint, x, self.tree.links[number[joint]].kind.nv) for joint, x in velocities.items()}
        for joint in given:
            missing = [name for name in self._siblings(joint) if name not in given]
            if missing and joint not in self._siblings(joint):
                raise ModelError(f"joint {joint!r} depends on {listed(missing)}: give the velocity of that one instead")
        w = np.zeros((*batch_of(given), self.tree.nv))
        for joint, value in given.items():
            w[..., self.tree.velocities(number[joint])] = value
        v = w[..., self.embedding.v_index]
        if q is not None:
            true = self.joint_velocities(q, v)
            for joint, value in velocities.items():
                apart = np.abs(true[joint] - np.asarray(value, dtype=float))
                if not (apart < GIVEN * np.maximum(1.0, np.abs(true[joint]))).all():
                    raise ModelError(
                        f"joint {joint!r}: the given velocity differs from the one that follows from the independent "
                        f"joints, by up to {apart.max():.3g}"
                    )
        return v

    def _by_joint(self, values: np.ndarray, entries: Callable[[int], np.ndarray]) -> dict[str, np.ndarray]:
        places = {joint: entries(link) for joint, link in self._moving.items()}
        return {joint: values[..., at[0] if len(at) == 1 else at] for joint, at in places.items()}

    # Constraints

    def explicit_constraint(self, q: Any, v: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """G and g with w = G v and ẇ = G v̇ + g, for the velocities w of all joints. [001, §II-B]

        Returns:
            G of shape (..., nw, nv) and g of shape (..., nw), in the order of `tree.links`.
        """
        p, v = self._state(q, v)
        self.states.check_regular(p)
        return self.embedding.explicit_constraint(p, v)

    def implicit_constraint(self, q: Any, v: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """K and k with K w = 0 and K ẇ = k, for the velocities w of all joints, without redundant rows. [001, §II-B]

        Returns:
            K of shape (..., rows, nw) and k of shape (..., rows), in the order of `tree.links`.
        """
        p, v = self._state(q, v)
        if not v.any():
            return self.embedding.implicit_constraint(p, np.zeros((*v.shape[:-1], self.tree.nv)))
        self.states.check_regular(p)
        return self.embedding.implicit_constraint(p, self.embedding.velocities(p, v))

    def cluster_subspaces(self, q: Any, cluster: int) -> ClusterSubspaces:
        """S, Tᵃ and Tᶜ of a cluster, by its number in `cluster_tree`, for one configuration. [001, §V]"""
        if not isinstance(cluster, int | np.integer) or not 0 < cluster < len(self.cluster_tree.clusters):
            last = len(self.cluster_tree.clusters) - 1
            raise ModelError(f"there is no cluster {clipped(cluster)}; there are 1 to {last}")
        p = self._positions(q)
        if p.ndim != 1:
            raise ModelError(f"q has the shape {p.shape}; subspaces are computed for one configuration at a time")
        self.states.check_regular(p)
        return ClusterJoint(self.cluster_tree, self.embedding, p, cluster).subspaces()

    def loop_errors(self, q: Any) -> dict[str, np.ndarray]:
        """The error of each loop and coupling, by name: its largest residual, (...), m or rad; zero when closed."""
        closure = self.embedding.closure
        p = self._positions(q)
        if not closure.loops:
            return {}
        phi = np.abs(closure.at(p)[0])
        errors = {
            constraint.name: phi[..., rows].max(axis=-1, initial=0.0) for constraint, rows in closure.constraints()
        }
        parts = (*self.loops, *self.couplings)  # of which some may follow from others
        return {part.name: np.zeros(p.shape[:-1]) for part in parts if part.name not in errors} | errors

    # Input

    def _positions(self, q: Any) -> np.ndarray:
        """Positions of all joints, with those that a γ determines filled in."""
        q = numbers("q", q, (self.nq,), batch=True)
        if self.given is not None and self.embedding.closure.loops:
            q = np.broadcast_to(q, (*batch_of({"q": q, "parameters": self.given.packed}), self.nq))
        p = self.embedding.positions(q)
        self.states.check_quaternions(p)
        self.states.check_solved(p)
        return p

    def _state(self, q: Any, v: Any) -> tuple[np.ndarray, np.ndarray]:
        """The positions of all joints, and v, which is zero if not given."""
        p, v = self._positions(q), numbers("v", np.zeros(self.nv) if v is None else v, (self.nv,), batch=True)
        batch_of({"q": p, "v": v})
        return p, v


def _by_name(what: str, given: Any) -> Mapping[str, Any]:
    """What a user gave, after checking that it is a mapping with joint names as keys."""
    if not isinstance(given, Mapping):
        raise ModelError(f"{what} must be a dictionary by names of joints, got {clipped(given)}")
    return given

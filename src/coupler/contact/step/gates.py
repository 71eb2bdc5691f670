"""Clusters of many freedoms that columns enter at few bodies, their gates; see columns.py.

Forces F on the gates push the joints of a cluster by z = B F, with B = Sᵀ of these bodies. They move it by y = D⁻¹ B F,
and its output bodies feel M F of them. Both z and y are long. But columns need nothing of the cluster beyond

    Λ = Bᵀ D⁻¹ B,    D⁻¹ B,    M

which are found once a step. So F takes the place of y, and Λ F that of z: zᵀ y′ is Fᵀ Λ F′ as before. Then x is the sum
of all forces on the gates, and the joints answer it by D⁻¹ B x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coupler.graph import Slot, symmetric
from coupler.passes import ClusterRecord, Sweep, Visit, provided

if TYPE_CHECKING:
    from coupler.contact.step.columns import Passage

_PAYS = 2  # a cluster gets gates if it has at least this many times the freedoms of its gates


class GatedCluster(ClusterRecord):
    """The fields of a cluster for forces on its gates."""

    gate_answer, gate_mobility, gate_felt = provided(), provided(), provided()  # D⁻¹ B, Λ, M


class Gates:
    """The gates of all clusters of a program. Clusters of one shape have gates at the same bodies.

    Attributes:
        bodies: for each shape that has gates, by its number, the bodies there.
    """

    def __init__(self, sweep: Sweep[Any, Any], ways: Iterable[Mapping[int, Passage]]) -> None:
        """Args: the program, and for each group of columns how it passes clusters."""
        self._sweep = sweep
        entered: dict[int, set[int]] = {}
        closed: set[int] = set()  # shapes of clusters that columns push at joints, too
        for way in ways:
            for k, passage in way.items():
                entered.setdefault(sweep.shape_of[k], set()).update(passage.active)
                if passage.entry is not None or passage.geared:
                    closed.add(sweep.shape_of[k])
        self.bodies = {
            number: tuple(sorted(bodies))
            for number, bodies in entered.items()
            if number not in closed and 6 * len(bodies) * _PAYS <= sweep.shapes[number][0].freedoms
        }
        self._answer, self._mobility, self._felt = (sweep.store(f"gate_{x}") for x in ("answer", "mobility", "felt"))
        for number, bodies in self.bodies.items():
            shape, clusters = sweep.shapes[number]
            size, outputs = 6 * len(bodies), shape.grounded.count(False)
            for k in clusters:
                self._answer.add(k, (shape.freedoms, size))
                self._mobility.add(k, symmetric(size))
                if outputs:
                    self._felt.add(k, (6 * outputs, size))

    def of(self, cluster: int) -> tuple[int, ...]:
        """The bodies of a cluster that are gates; none if it is seen by its freedoms."""
        return self.bodies.get(self._sweep.shape_of[cluster], ())

    def fields(self, clusters: Sequence[int]) -> dict[str, Slot]:
        """The fields that clusters of one shape see of their gates."""
        if not self.of(clusters[0]):
            return {}
        seen = {"gate_answer": self._answer.at(clusters), "gate_mobility": self._mobility.at(clusters)}
        return seen | ({"gate_felt": self._felt.at(clusters)} if clusters[0] in self._felt.starts else {})

    def weigh(self, function: Callable[[Visit[Any, Any], tuple[int, ...]], None]) -> None:
        """Runs the pass that computes the effect of forces on gates.

        Args:
            function: takes a cluster and its gates.
        """
        schedule = self._sweep.schedule()
        for k in self._sweep.clusters():
            if self.of(k):
                self._sweep.visit(schedule, function, k, self.of(k))
        schedule.run()

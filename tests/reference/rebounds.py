"""Contacts that rebound in place, in NumPy: the reference for contact/step/rebound.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from coupler.contact.formulations import Touch, first_rows
from coupler.contact.problem import ContactProblem
from coupler.contact.restitution import ReboundTerms, Restitution, pending_rebound, rebound_terms
from coupler.contact.solution import Solution
from coupler.model.numbers import numbers


class Rebounds:
    """The contacts of a step that can rebound in place, and their terms in its problem.

    Attributes:
        offset: (rows,), impulses that act in advance, N s.
    """

    def __init__(
        self, contacts: Sequence[Touch], pending: Any, closures: np.ndarray, free: np.ndarray, approach: np.ndarray
    ) -> None:
        """Finds the terms of each contact that can rebound.

        Args:
            contacts: all contacts.
            pending: (contacts, 3), what the previous step left of them; None at the start.
            closures: (contacts,), see `rebound_terms`.
            free, approach: (rows,), see `rebound_terms`.
        """
        n = len(contacts)
        pending = np.zeros((n, 3)) if pending is None else numbers("pending", pending, (n, 3))
        self._contacts, self._first = contacts, first_rows(contacts)
        self._free, self._approach = normal_and_tangents(free, contacts), normal_and_tangents(approach, contacts)
        self._terms: dict[int, tuple[Restitution, ReboundTerms]] = {}
        self.offset = np.zeros(len(free))
        for k, pair in enumerate(touch.pair for touch in contacts):
            if (law := pair.restitution) is not None:
                before = pending[k], closures[k], self._free[k], self._approach[k]
                self._terms[k] = law, rebound_terms(law, pair.friction, *before)
                self.offset[self._first[k] :][:3] = self._terms[k][1].offset

    def applied(self, problem: ContactProblem) -> ContactProblem:
        """The problem of the step, under the laws of contacts that close or rebound."""
        b = problem.b.copy()
        for k, (_, terms) in self._terms.items():
            b[self._first[k] :][:3] = terms.b
        return replace(problem, b=b + problem.A @ self.offset)

    def pending(self, problem: ContactProblem, solution: Solution) -> np.ndarray:
        """(contacts, 3): what the next step must know of each contact."""
        pending = np.zeros_like(self._approach)
        impulses, velocities = (
            normal_and_tangents(x, self._contacts) for x in (solution.impulses, solution.velocities)
        )
        for k, (law, terms) in self._terms.items():
            mobility, solved = problem.A[self._first[k], self._first[k]], (impulses[k], velocities[k])
            pending[k] = pending_rebound(law, terms.closing, mobility, *solved, self._free[k], self._approach[k])
        return pending


def normal_and_tangents(values: np.ndarray, candidates: Sequence[Touch]) -> np.ndarray:
    """(contacts, 3): the entries of the contacts' normals and tangents, from values of all rows."""
    return values[first_rows(candidates)[:, None] + np.arange(3)]

"""Chooses the loops of a robot that are closed analytically: as asked for, recognised, or offered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from coupler.model.closed_forms import ClosedForm, Offer, find_closed_forms
from coupler.model.closed_forms.choice import Closing
from coupler.model.embedder import Embedded, Embedder
from coupler.model.embedding.choice import Choice
from coupler.model.embedding.constraints import Constraint, Loop, LoopConstraint
from coupler.model.errors import ModelError
from coupler.model.loops import Coupling

_TRIED = 8  # how many loops of a cluster, and choices of its independent joints, are tried for a closed form


class FoundForms:
    """The closed forms of a robot's clusters, as far as they are asked for.

    Attributes:
        used: the closed forms that are used, as couplings that solve their clusters.
        unused: by loop, closed forms that have dead points and that "auto" therefore does not use.
    """

    def __init__(self, embedder: Embedder, embedded: Embedded, choice: Mapping[str, Closing]) -> None:
        """Args: what embeds constraints, the constraints embedded, and by name how each is to be closed."""
        self._embedder, self._choice = embedder, choice
        self._closure, self._assembly = embedded.states.closure, embedded.assembly
        explicit = embedded.states.embedding.explicit
        self._open = [loop for loop, solved in zip(self._closure.loops, explicit, strict=True) if not solved]
        self.used: list[tuple[Coupling, ClosedForm]] = []
        self.unused: dict[str, ClosedForm] = {}
        if self._open and any(word != "numerical" for word in choice.values()):
            self.used = self._find(self._assembly.choices, self._open, self._is_wanted)

    def _is_wanted(self, loop: Loop, form: ClosedForm) -> bool:
        """Whether to use a closed form; one that is rejected because of its dead points is noted in `unused`."""
        words = {c.name: self._choice[c.name] for c in loop.constraints if c.name in self._choice}
        if "numerical" in words.values():
            return False
        if form.dead_points and "analytical" not in words.values():
            self.unused.update(dict.fromkeys(words, form))
            return False
        return True

    def _find(
        self, choices: Sequence[Choice], loops: Sequence[Loop], is_wanted: Callable[[Loop, ClosedForm], bool]
    ) -> list[tuple[Coupling, ClosedForm]]:
        neutral, couplings = self._assembly.neutral, self._embedder.couplings
        return find_closed_forms(self._closure, choices, neutral, couplings, loops, is_wanted)

    @property
    def by_name(self) -> dict[str, ClosedForm]:
        """The closed forms that are used, by the names of the loops and couplings that they solve."""
        return {name: form for coupling, form in self.used for name in coupling.solves if name in self._choice}

    @property
    def missing(self) -> list[str]:
        """The loops that have no closed form although one was asked for."""
        solved = {name for coupling, _ in self.used for name in coupling.solves}
        names = [constraint.name for loop in self._open for constraint in loop.constraints]
        return [name for name in names if self._choice.get(name) == "analytical" and name not in solved]

    def joints_with_closed_form(self, constraints: Sequence[Constraint]) -> set[str]:
        """Joints which, if they were independent instead, would give the loops in `missing` a closed form."""
        missing, embedder = {*self.missing}, self._embedder
        loops = [loop for loop in self._closure.loops if any(c.name in missing for c in loop.constraints)]
        members = {embedder.tree.links[link].joint for loop in loops for link in loop.links}
        if not loops or any(embedder.joints[name].independent for name in members):
            return set()
        common = {joint for _, coupling, _ in self._alternatives(loops) for joint in coupling.independent}
        for marked in [common, set[str]()] if common else [common]:
            others = embedder.with_joints(
                replace(joint, actuated=joint.actuated and name not in members, independent=name in marked)
                if name in members
                else joint
                for name, joint in embedder.joints.items()
            )
            try:
                forms = FoundForms(others, others.embed(constraints), self._choice)
            except ModelError:  # these joints cannot all be independent
                continue
            solving = [coupling for coupling, _ in forms.used if missing & {*coupling.solves}]
            if solving:
                return {name for coupling in solving for name in coupling.independent}
        return set()

    def offers(self) -> list[Offer]:
        """Closed forms of loops for which "auto" has none, because their driven joints are the independent ones."""
        done = {name for coupling, _ in self.used for name in coupling.solves} | {*self.unused}
        embedder = self._embedder
        loops = [
            loop
            for loop in self._open
            if all(self._choice.get(c.name, "auto") == "auto" and c.name not in done for c in loop.constraints)
            and not any(embedder.joints[embedder.tree.links[link].joint].independent for link in loop.links)
        ]
        return [
            Offer(tuple(c.name for c in loop.constraints if c.name in self._choice), coupling.independent, form.name)
            for loop, coupling, form in self._alternatives(loops)
        ]

    def _alternatives(self, loops: Sequence[Loop]) -> list[tuple[Loop, Coupling, ClosedForm]]:
        """Closed forms that clusters would have with other independent joints.

        The position of an actuator across a hinge follows from that of the hinge, but not the other way round. The same
        holds for legs that carry a platform together. So the joints that two loops of a cluster have in common are
        tried, and in mechanisms of one freedom each joint.
        """
        alternatives = []
        for i, loop in enumerate(self._closure.loops):
            for links in self._candidates(loop, self._assembly.choices[i]) if loop in loops else ():
                independent = np.isin(loop.columns, self._embedder.tree.velocities_of(links))
                choices = list(self._assembly.choices)
                choices[i] = replace(choices[i], independent=np.flatnonzero(independent))
                if forms := self._find(choices, [loop], lambda *_: True):
                    alternatives.append((loop, *forms[0]))
                    break
        return alternatives

    def _candidates(self, loop: Loop, choice: Choice) -> list[list[int]]:
        """Links whose joints might be independent in a cluster instead."""
        tree, joints = self._embedder.tree, self._embedder.joints
        freedoms, kinds = len(choice.independent), [link.kind for link in tree.links]
        ways = [{*c.ways[0], *c.ways[1]} for c in loop.constraints if isinstance(c, LoopConstraint)]
        common = [tuple(sorted(one & other)) for one, other in combinations(ways[:_TRIED], 2)]
        common = [links for links in dict.fromkeys(common) if sum(kinds[link].nv for link in links) == freedoms]
        driven = {link for link in loop.links if joints[tree.links[link].joint].actuated}
        single = [(link,) for link in loop.links if freedoms == kinds[link].nv == 1 and link not in driven]
        return [list(links) for links in dict.fromkeys([*common, *single])][:_TRIED]

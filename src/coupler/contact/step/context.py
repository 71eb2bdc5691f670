"""The context that all parts of the program of a contact step share."""

from __future__ import annotations

from dataclasses import dataclass

from coupler.contact.rows import Indices
from coupler.contact.scene import ContactScene, Layout
from coupler.contact.step.candidates import Candidates
from coupler.contact.step.columns import Columns
from coupler.contact.step.halves import Halves
from coupler.contact.step.interaction import InteractingBlocks
from coupler.contact.step.memory import StepBody, StepCluster
from coupler.graph import Builder, Window, fields
from coupler.passes import Sweep


@dataclass(frozen=True, eq=False)
class StepContext:
    """The program of a step while it is written, with its contact problem.

    Attributes:
        sweep: the program, with the memory of bodies and clusters.
        scene: what the step takes into account.
        layout: the layout of its state and results.
        halves: the part of the step that each tree of bodies has moved when forces are taken.
        candidates: the candidate contacts.
        columns: forces on links by unit of impulse, for contacts, joints and actuators.
        blocks: the contact problem.
    """

    sweep: Sweep[StepBody, StepCluster]
    scene: ContactScene
    layout: Layout
    halves: Halves
    candidates: Candidates
    columns: Columns
    blocks: InteractingBlocks

    @property
    def builder(self) -> Builder:
        return self.sweep.builder

    def responses(self, contacts: Indices) -> list[Window]:
        """The effect of impulses on the links of contacts, link by link: forces P by unit of impulse, and Δu.

        Args:
            contacts: contacts that act on equally many links each.
        """
        links = map(list, zip(*(self.candidates.starts[contact].links for contact in contacts), strict=True))
        bodies = [(side, self.sweep.bodies(side)) for side in links]
        return [fields(P=self.columns.at_link(contacts, side), du=body.fields["du"]) for side, body in bodies]

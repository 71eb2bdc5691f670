"""Overlaps that no impulses part, as steps of a program: they are kept from growing, and left as they are.

A gap g asks for w_n ≥ −g/h, whatever else the bodies can do; with an overlap, this may be impossible. Where impulses s
inside their cones move nothing, A s = 0, all impulses λ leave s·w = s·b, and that is Σ s_n g/h: with an overlap it is
below zero, and no w keeps the laws. There are two kinds of it.

- A *jammed contact*: bodies that have fewer than three freedoms between them move each other along a plane or a line
  alone, and the direction across may be inside the cone. Then friction holds the contact however hard it is pressed,
  like a wedge that sticks. Only motion along the plane parts it, which the contact's own impulse never makes.
- Several contacts, or limits of joints, that press against each other. Each part of a robot which lies on more points
  than it needs does so: gaps that differ by the rounding of many steps exclude each other, too.

So overlaps of jammed contacts count as touching from the start. And where a problem is not solved, it is heard again,
from no impulses, with all that overlaps, or nearly touches, counted as touching: then b = J u, which impulses can
always cancel. Where that fails, too, it is heard for the last time, from the best impulses so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from coupler.contact.kernels import clear
from coupler.contact.rows import Indices
from coupler.contact.scene import ContactScene, Layout
from coupler.contact.step.blocks import shared
from coupler.contact.step.interaction import InteractingBlocks
from coupler.graph import Vector, View, Window, constants, fields
from coupler.model import Robot

_NEARLY = 1e-9  # m or rad: what is so near counts as touching when a problem is heard again
_STUCK = 1e-4  # of A_nn: where a contact gives way less than that to a push inside its cone, it jams
_HEARINGS = 3
_FREE = 3  # freedoms between two bodies: with as many, a contact moves in all directions but in odd poses


class Jams:
    """The overlaps of a problem's contacts and limits.

    Attributes:
        closures: of all contacts, the part of b_n that their gaps make, m/s; whoever measures contacts writes it.
    """

    def __init__(self, robot: Robot, scene: ContactScene, layout: Layout, blocks: InteractingBlocks) -> None:
        """Args: a robot, what its step takes into account, the step's layout, and its problem."""
        builder = self._builder = blocks.builder
        self._scene, self._layout, self._blocks = scene, layout, blocks
        self.closures = builder.scratch("closures", blocks.contacts)
        self._state = {name: builder.scratch(f"hearing_{name}", 1) for name in ("asks", "heard", "relents")}
        links = [[robot.tree.place[shape.body][0] for shape in (pair.one, pair.other)] for pair in scene.pairs]
        few = [_freedoms_between(robot, *own) < _FREE for own in links]
        self._few_freedoms = [
            contact
            for contact, own in enumerate(i for i, pair in enumerate(scene.pairs) for _ in range(pair.count))
            if few[own]
        ]

    def begin(self, jammed: Vector, gaps: Vector) -> None:
        """Writes that none has been found.

        Args:
            jammed: 1, gets the depth of the deepest overlap that is left as it is, m or rad.
            gaps: of all contacts, m.
        """
        self._jammed, self._gaps = jammed, gaps
        clear(self._builder, jammed)

    def let_stick(self) -> None:
        """Writes the steps by which overlaps of jammed contacts, which have been described, count as touching."""
        for contacts in self._blocks.alike(self._few_freedoms):
            self._builder.loop(_let_stick, own=self._contacts(contacts), **self._blocks.among("active", contacts))

    @contextmanager
    def hear_again(self, residual: Vector, limit: Vector) -> Iterator[None]:
        """What is written inside solves a problem, and does so again where it could not, without overlaps.

        Args:
            residual: 1, what it leaves, m/s.
            limit: 1, what it may leave, m/s.
        """
        known = {name: buffer.at(0) for name, buffer in self._state.items()}
        state = fields(**known, residual=residual.at(0), limit=limit.at(0))
        self._builder.loop(_begin, state=state)
        self._blocks.each(_see_nothing, _see_nothing)
        with self._builder.repeat(until=_nobody_asks, at_most=_HEARINGS, state=state):
            yield
            self._builder.loop(_judge, state=state)
            with self._builder.repeat(until=_is_solved_or_known, at_most=1, rare=True, state=state):
                self._relent()
                with self._builder.repeat(until=_nothing_relents, at_most=1, rare=True, state=state):
                    self._blocks.each(_forget, _forget)
                    self._blocks.sum_up()

    def _relent(self) -> None:
        """Writes the steps by which all that overlaps, or nearly touches, counts as touching."""
        blocks, relents = self._blocks, shared(relents=self._state["relents"])
        for contacts in blocks.alike(range(blocks.contacts)):
            own = self._contacts(contacts) | relents(contacts)
            blocks.builder.loop(_relent_contact, own=own, **blocks.among("active", contacts))
        joints = range(blocks.contacts, blocks.contacts + len(self._layout.joints))
        if joints:
            own = blocks.of(joints) | self._more(joints) | relents(joints)
            blocks.builder.loop(_relent_joint, own=own, **blocks.among("active", joints))

    def _contacts(self, contacts: Indices) -> Window:
        more = fields(closure=self.closures.at(contacts), gap=self._gaps.at(contacts))
        return self._blocks.of(contacts) | self._more(contacts) | more

    def _more(self, own: Sequence[int] | np.ndarray) -> Window:
        return shared(jammed=self._jammed)(own) | fields(step=constants(np.full(len(own), self._scene.step)))


def _freedoms_between(robot: Robot, one: int, other: int) -> int:
    """How many freedoms two links have to move against each other, at most."""
    clusters, cluster_of = robot.cluster_tree.clusters, robot.cluster_tree.cluster_of

    def carriers(link: int) -> set[int]:
        found = set[int]()
        k = cluster_of[link] if link else 0
        while k:
            found.add(k)
            k = clusters[k].parent
        return found

    between = carriers(one) ^ carriers(other)
    if one and other and cluster_of[one] == cluster_of[other] and one != other:
        between.add(cluster_of[one])
    return sum(robot.tree.links[link].kind.nv for k in between for link in clusters[k].bodies)


# Kernels of a state


def _begin(state: View) -> None:
    state.asks, state.heard, state.relents = np.array(1.0), np.array(0.0), np.array(0.0)


def _nobody_asks(state: View) -> Any:
    return state.asks <= 0.0


def _judge(state: View) -> None:
    state.asks = np.where(state.residual <= state.limit, 0.0, 1.0)
    state.heard = state.heard + 1.0


def _is_solved_or_known(state: View) -> Any:
    return (state.asks <= 0.0) | (state.heard > 1.0)


def _nothing_relents(state: View) -> Any:
    return state.relents <= 0.0


# Kernels of blocks


def _see_nothing(own: View) -> None:
    own.w = own.b  # until it is measured: others read it afterwards


def _let_stick(own: View) -> None:
    """A push along s, the first column of A⁻¹, moves the contact along the normal alone, by 1/s_n of it."""
    n, x, y = own.inverse[0]
    sticks = (own.closure < 0.0) & (_STUCK * own.A[0, 0] * n > 1.0) & (x * x + y * y <= (own.friction[0] * n) ** 2)
    _touch(own, sticks)


def _relent_contact(own: View) -> None:
    relents = (own.closure < _NEARLY / own.step) & (own.closure != 0.0)
    own.relents = np.where(relents, 1.0, own.relents)
    _touch(own, relents)


def _touch(own: View, touches: Any) -> None:
    deep = touches & (own.closure < -_NEARLY / own.step)
    own.jammed = np.maximum(own.jammed, np.where(deep, -own.gap, 0.0))
    normal = own.b[0] - np.where(touches, own.closure, 0.0)
    own.b = np.stack([normal, *own.b[1:]])
    own.closure = np.where(touches, 0.0, own.closure)


def _relent_joint(own: View) -> None:
    nearly = _NEARLY / own.step
    low, high = (own.low > -nearly) & (own.low != 0.0), (own.high < nearly) & (own.high != 0.0)
    own.relents = np.where(low | high, 1.0, own.relents)
    depth = np.maximum(np.where(low, own.low, 0.0), np.where(high, -own.high, 0.0))
    own.jammed = np.maximum(own.jammed, np.where(depth > nearly, depth * own.step, 0.0))
    own.low, own.high = np.where(low, 0.0, own.low), np.where(high, 0.0, own.high)


def _forget(own: View) -> None:
    own.impulse = np.zeros(np.shape(own.impulse))

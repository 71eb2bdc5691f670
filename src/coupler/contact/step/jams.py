"""Overlaps that no impulses can part, as steps of a program: they may not grow, and are left as they are.

A contact with gap g must get w_n ≥ −g/h. With an overlap, g < 0, that may be impossible. If some impulses s inside
their cones move nothing, A s = 0, then s·w = s·b = Σ s_n g/h whatever the impulses are. With an overlap this is
negative, and no w satisfies the laws. It happens in three ways.

- *No impulse moves a contact along its normal*: a wheel on a cart that runs on a rail, a hand on a wall at the end of
  an arm that is stretched out. What it carries is not determined; it carries nothing.
- *A contact jams.* Two bodies with fewer than three freedoms between them can move against each other only in a plane
  or along a line. If the direction across lies inside the friction cone, friction holds the contact however hard it is
  pressed, like a wedge. Only a motion along the plane parts it, and the contact's own impulse never causes one.
- *Contacts or joint limits contradict each other.* They do so slightly wherever a body lies on more points than it
  needs, because gaps differ by the rounding of many steps.

So overlaps of jammed contacts count as touching from the start. A problem that is not solved is tried again, starting
from zero impulses, with everything that overlaps or nearly touches counted as touching: then b = J u, which impulses
can always cancel. If that fails as well, it is tried a last time, from the best impulses so far.

Near such poses impulses can part an overlap, but only by throwing things about: a leg that hangs down straight, and is
to part from the floor by lifting its foot at 0.1 m/s, would have to swing at thousands of rad/s. Where the speed of
parting is bounded (see `let_out`), so is its work. Parting one after another along a chain, no part of a robot of mass
m becomes faster than the sum c of the speeds at which contacts part, which takes m c²/2; a lever may multiply that by
`_LEVER`. A single contact that would need more, because 1/A_nn is larger than that mass, parts more slowly. Where
several contacts need more together, the problem counts as not solved.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

import numpy as np

from coupler.contact.kernels import clear
from coupler.contact.rows import Indices
from coupler.contact.scene import ContactScene, Layout
from coupler.contact.solution import ENOUGH
from coupler.contact.step.blocks import shared
from coupler.contact.step.interaction import InteractingBlocks
from coupler.graph import Vector, View, Window, constants, fields
from coupler.model import Robot

_NEARLY = 1e-9  # m or rad: smaller gaps count as touching when a problem is tried again
_STUCK = 1e-4  # times A_nn: a contact that gives way less than that to a push inside its cone jams
_TRIES = 3
_LEVER = 10.0  # times m c²/2: the most work of parting; a rod that touches at 18 % of its length needs as much
_STATE = ("unsolved", "tries", "relents", "speed", "work")  # what is known of the tries, one number each
_FREE = 3  # freedoms between two bodies; with as many, a contact moves in all directions, except in singular poses


class Jams:
    """The overlaps of a problem's contacts and limits.

    Attributes:
        closures: for each contact, the part of b_n that comes from its gap, m/s; `Measurement` writes it.
    """

    def __init__(self, robot: Robot, scene: ContactScene, layout: Layout, blocks: InteractingBlocks) -> None:
        """Finds the contacts that can jam.

        Args:
            scene: its pairs of shapes, and the length of a step.
            layout: the layout of the step's vectors.
            blocks: the contact problem of the step.
        """
        builder = self._builder = blocks.builder
        self._hardest = _LEVER * sum(body.mass for body in robot.bodies.values())
        self._scene, self._layout, self._blocks = scene, layout, blocks
        self.closures = builder.scratch("closures", blocks.contacts)
        self._state = {name: builder.scratch(f"jams_{name}", 1) for name in _STATE}
        freedoms = [
            _freedoms_between(robot, *(robot.tree.place[shape.body][0] for shape in (pair.one, pair.other)))
            for pair in scene.pairs
            for _ in range(pair.count)
        ]
        self._few_freedoms = [contact for contact, number in enumerate(freedoms) if number < _FREE]
        self._fixed = [contact for contact, number in enumerate(freedoms) if number < inf]

    def begin(self, jammed: Vector, gaps: Vector) -> None:
        """Writes the step that clears the overlaps of the previous step.

        Args:
            jammed: 1, for the depth of the deepest overlap that is left as it is, m or rad.
            gaps: the gaps of all contacts, m.
        """
        self._jammed, self._gaps = jammed, gaps
        clear(self._builder, jammed)

    def let_stick(self) -> None:
        """Writes the steps that make overlaps of jammed contacts count as touching; active blocks have been listed."""
        kernels = [(_let_be, self._fixed), (_let_stick, self._few_freedoms)]
        if self._scene.recovery < inf:
            kernels.insert(1, (_part_slowly, self._fixed))
        for kernel, jamming in kernels:
            for contacts in self._blocks.alike(jamming):
                block = self._contacts(contacts) | fields(hardest=constants(np.full(len(contacts), self._hardest)))
                self._builder.loop(kernel, block=block, **self._blocks.among("active", contacts))

    @contextmanager
    def try_again(self, residual: Vector, limit: Vector, iterations: Vector) -> Iterator[None]:
        """A context for the steps that solve the problem. They run again, without overlaps, in states left unsolved.

        Args:
            residual: 1, the residual that the steps leave, m/s.
            limit: 1, the residual that they may leave, m/s.
            iterations: 1, the number of iterations beyond sweeps; sweeps alone do not find violent solutions.
        """
        scalars = {name: buffer.at(0) for name, buffer in self._state.items()}
        state = fields(**scalars, residual=residual.at(0), limit=limit.at(0), iterations=iterations.at(0))
        self._builder.loop(_begin, state=state)
        self._blocks.each(_see_nothing, _see_nothing)
        with self._builder.repeat(until=_is_solved, at_most=_TRIES, state=state):
            yield
            self._builder.loop(_judge, state=state)
            if self._scene.recovery < inf:
                with self._builder.repeat(until=_is_found_by_sweeps, at_most=1, rare=True, state=state):
                    self._refuse_violence(state)
            with self._builder.repeat(until=_is_solved_or_relented, at_most=1, rare=True, state=state):
                self._relent()
                with self._builder.repeat(until=_nothing_relents, at_most=1, rare=True, state=state):
                    self._blocks.each(_forget, _forget)
                    self._blocks.sum_up()

    def _refuse_violence(self, state: Window) -> None:
        """Writes the steps that count a problem as not solved if its contacts part with more work than they may."""
        totals = shared(speed=self._state["speed"], work=self._state["work"])
        for contacts in self._blocks.alike(range(self._blocks.contacts)):
            block = self._contacts(contacts) | totals(contacts)
            self._builder.loop(_add_work, block=block, **self._blocks.among("active", contacts))
        bounds = fields(hardest=constants([self._hardest]), recovery=constants([self._scene.recovery]))
        self._builder.loop(_judge_work, state=state | bounds)

    def _relent(self) -> None:
        """Writes the steps that make everything that overlaps or nearly touches count as touching."""
        blocks, relents = self._blocks, shared(relents=self._state["relents"])
        for contacts in blocks.alike(range(blocks.contacts)):
            block = self._contacts(contacts) | relents(contacts)
            blocks.builder.loop(_relent_contact, block=block, **blocks.among("active", contacts))
        joints = range(blocks.contacts, blocks.contacts + len(self._layout.joints))
        if joints:
            block = blocks.of(joints) | self._more(joints) | relents(joints)
            blocks.builder.loop(_relent_joint, block=block, **blocks.among("active", joints))

    def _contacts(self, contacts: Indices) -> Window:
        more = fields(closure=self.closures.at(contacts), gap=self._gaps.at(contacts))
        return self._blocks.of(contacts) | self._more(contacts) | more

    def _more(self, blocks: Indices) -> Window:
        return shared(jammed=self._jammed)(blocks) | fields(step=constants(np.full(len(blocks), self._scene.step)))


def _freedoms_between(robot: Robot, one: int, other: int) -> float:
    """The largest number of freedoms with which two links can move against each other; infinite if one floats."""
    clusters, cluster_of = robot.cluster_tree.clusters, robot.cluster_tree.cluster_of

    def carriers(link: int) -> set[int]:
        clusters_below = set[int]()
        k = cluster_of[link] if link else 0
        while k:
            clusters_below.add(k)
            k = clusters[k].parent
        return clusters_below

    between = carriers(one) ^ carriers(other)
    if one and other and cluster_of[one] == cluster_of[other] and one != other:
        between.add(cluster_of[one])
    kinds = [robot.tree.links[link].kind for k in between for link in clusters[k].bodies]
    return inf if any(kind.floats for kind in kinds) else sum(kind.nv for kind in kinds)


# Kernels of a state


def _begin(state: View) -> None:
    state.unsolved, state.tries, state.relents = np.array(1.0), np.array(0.0), np.array(0.0)


def _is_solved(state: View) -> Any:
    return state.unsolved <= 0.0


def _judge(state: View) -> None:
    state.unsolved = np.where(state.residual <= ENOUGH * state.limit, 0.0, 1.0)
    state.tries = state.tries + 1.0
    state.speed = state.work = np.array(0.0)


def _is_found_by_sweeps(state: View) -> Any:
    return state.iterations <= 0.0


def _judge_work(state: View) -> None:
    violent = state.work > state.hardest * (state.recovery + state.speed) ** 2
    state.unsolved = np.where(violent, 1.0, state.unsolved)


def _is_solved_or_relented(state: View) -> Any:
    return (state.unsolved <= 0.0) | (state.tries > 1.0)


def _nothing_relents(state: View) -> Any:
    return state.relents <= 0.0


# Kernels of blocks


def _see_nothing(block: View) -> None:
    block.w = block.b  # so that it is defined before it is measured


def _let_be(block: View) -> None:
    """Leaves out a contact that no impulse moves along its normal: it neither parts nor pushes."""
    held = block.held > 0.0
    _touch(block, held & (block.closure < 0.0))
    block.b = np.stack([np.where(held, np.maximum(block.b[0], 0.0), block.b[0]), *block.b[1:]])


def _part_slowly(block: View) -> None:
    """Lets a contact part as slowly as the work that it may do allows: (−closure)²/A_nn."""
    share = np.sqrt(np.minimum(block.hardest * block.A[0, 0], 1.0))
    slower = np.where(block.closure < 0.0, (share - 1.0) * block.closure, 0.0)
    block.b, block.closure = np.stack([block.b[0] + slower, *block.b[1:]]), block.closure + slower


def _let_stick(block: View) -> None:
    """Jams a contact if the impulse s that moves it along its normal, a column of A⁻¹, is large and in the cone."""
    n, x, y = block.inverse[0]
    sticks = (
        (block.closure < 0.0) & (_STUCK * block.A[0, 0] * n > 1.0) & (x * x + y * y <= (block.friction[0] * n) ** 2)
    )
    _touch(block, sticks)


def _add_work(block: View) -> None:
    speed = np.maximum(-block.closure, 0.0)
    block.speed, block.work = block.speed + speed, block.work + speed * block.impulse[0]


def _relent_contact(block: View) -> None:
    relents = (block.closure < _NEARLY / block.step) & (block.closure != 0.0)
    block.relents = np.where(relents, 1.0, block.relents)
    _touch(block, relents)


def _touch(block: View, touches: Any) -> None:
    deep = touches & (block.closure < -_NEARLY / block.step)
    block.jammed = np.maximum(block.jammed, np.where(deep, -block.gap, 0.0))
    normal = block.b[0] - np.where(touches, block.closure, 0.0)
    block.b = np.stack([normal, *block.b[1:]])
    block.closure = np.where(touches, 0.0, block.closure)


def _relent_joint(block: View) -> None:
    nearly = _NEARLY / block.step
    low, high = (block.low > -nearly) & (block.low != 0.0), (block.high < nearly) & (block.high != 0.0)
    block.relents = np.where(low | high, 1.0, block.relents)
    depth = np.maximum(np.where(low, block.low, 0.0), np.where(high, -block.high, 0.0))
    block.jammed = np.maximum(block.jammed, np.where(depth > nearly, depth * block.step, 0.0))
    block.low, block.high = np.where(low, 0.0, block.low), np.where(high, 0.0, block.high)


def _forget(block: View) -> None:
    block.impulse = np.zeros(np.shape(block.impulse))

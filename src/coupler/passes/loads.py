"""Forces that act on bodies from outside, and springs and dampers between their points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from coupler.graph import Buffer, View, fields
from coupler.model.elements import PointElement
from coupler.passes.body import Moving
from coupler.passes.cluster import Cluster
from coupler.passes.sweep import Sweep
from coupler.spatial import Transform

__all__ = ["add_element_energy", "add_loads"]


def add_loads(sweep: Sweep[Any, Any], external: bool) -> None:
    """Writes the steps that collect loads on all bodies, about the world's origin in the world's axes.

    Args:
        sweep: the program, for bodies that are loaded.
        external: whether it has an input `f_ext`, 6 for each body of the robot.
    """
    robot, builder, tree = sweep.robot, sweep.builder, sweep.robot.tree
    sweep.outward(locate)
    builder.loop(_unload, body=sweep.bodies(sweep.links))
    if external:
        forces = builder.input("f_ext", 6 * len(robot.bodies))
        moving = [(i, tree.place[name][0]) for i, name in enumerate(robot.bodies) if tree.place[name][0]]
        force = fields(f=forces.at([6 * i for i, _ in moving], 6))
        builder.loop(_load, body=sweep.bodies([link for _, link in moving]), force=force)
    for element, ends in _elements(sweep):
        builder.loop(_pull(element, "first" in ends, "second" in ends), **ends)


def add_element_energy(sweep: Sweep[Any, Any], energy: Buffer) -> None:
    """Writes the steps that add the energy of springs between points, for bodies that remember their poses."""

    def store(element: PointElement, first: Any, second: Any, total: View) -> None:
        poses = [Transform.identity() if end is None else Transform(end.E, end.r) for end in (first, second)]
        total.energy += np.array([element.energy(*poses)])

    for element, ends in _elements(sweep):
        kernels = {
            ("first", "second"): lambda first, second, total, e=element: store(e, first, second, total),
            ("first",): lambda first, total, e=element: store(e, first, None, total),
            ("second",): lambda second, total, e=element: store(e, None, second, total),
        }
        sweep.builder.loop(kernels[tuple(ends)], **ends, total=fields(energy=energy.at(0, 1)))


def _elements(sweep: Sweep[Any, Any]) -> Iterator[tuple[PointElement, dict[str, Any]]]:
    """Springs and dampers with their points on links, and the memory of their ends, where that is not the ground."""
    place = sweep.robot.tree.place
    for element in sweep.robot.elements:
        (first, on_first), (second, on_second) = place[element.first], place[element.second]
        if first != second:
            points = {"first_point": _on_link(on_first, element.first_point)}
            points["second_point"] = _on_link(on_second, element.second_point)
            links = {name: link for name, link in (("first", first), ("second", second)) if link}
            yield replace(element, **points), {name: sweep.bodies([link]) for name, link in links.items()}


def _on_link(place: Transform, point: np.ndarray) -> np.ndarray:
    """A point of a body in the frame of its link."""
    return place.r + place.E.T @ point


def locate(cluster: Cluster[Any, Any]) -> None:
    """Poses in the world, and velocities."""
    cluster.remember()
    for body, view in zip(cluster.bodies, cluster.views.bodies, strict=True):
        memory = Moving(view)
        memory.v, memory.E, memory.r = body.v, body.pose.E, body.pose.r


def _unload(body: View) -> None:
    body.load = np.zeros(6)


def _load(body: View, force: View) -> None:
    body.load += force.f


def _pull(element: PointElement, first_moves: bool, second_moves: bool) -> Callable[..., None]:
    """A spring between two bodies, either of which may be the ground."""

    def both(first: View, second: View) -> None:
        force = element.force(*_motion(first), *_motion(second))
        first.load, second.load = first.load + force, second.load - force

    def on_first(first: View) -> None:
        first.load += element.force(*_motion(first), Transform.identity(), np.zeros(6))

    def on_second(second: View) -> None:
        second.load -= element.force(Transform.identity(), np.zeros(6), *_motion(second))

    return both if first_moves and second_moves else on_first if first_moves else on_second


def _motion(body: View) -> tuple[Transform, np.ndarray]:
    return Transform(body.E, body.r), body.v

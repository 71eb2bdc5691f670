"""Forces on bodies from outside, and springs and dampers between points of bodies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from coupler.graph import Buffer, View, constants, fields, is_known
from coupler.model.elements import PointElement
from coupler.passes.body import Moving
from coupler.passes.cluster import Visit
from coupler.passes.sweep import Sweep
from coupler.spatial import Transform


def add_loads(sweep: Sweep[Any, Any], external: bool) -> Buffer | None:
    """Writes the steps that add up the loads on each body, along the world's axes about its origin.

    Args:
        sweep: the program; nothing is written unless it is `loaded`.
        external: whether it gets an input `f_ext`, 6 for each body of the robot.

    Returns:
        That input, if there is one, for `collect_loads`.
    """
    if not sweep.loaded:
        return None
    forces = sweep.builder.input("f_ext", 6 * len(sweep.robot.bodies)) if external else None
    collect_loads(sweep, forces)
    return forces


def collect_loads(sweep: Sweep[Any, Any], forces: Buffer | None) -> None:
    """Writes the steps of `add_loads` for the poses that bodies have now, with forces of an existing input or none."""
    robot, builder, tree = sweep.robot, sweep.builder, sweep.robot.tree
    sweep.outward(locate, new_velocities=True)
    builder.loop(_unload, body=sweep.bodies(sweep.links))
    if forces is not None:
        moving = [(i, tree.place[name][0]) for i, name in enumerate(robot.bodies) if tree.place[name][0]]
        force = fields(f=forces.at([6 * i for i, _ in moving], 6))
        builder.loop(_load, body=sweep.bodies([link for _, link in moving]), force=force)
    for element, ends in _elements(sweep):

        def pull(first: list[View], second: list[View], model: View, element: PointElement = element) -> None:
            force = _given(element, model).force(*_motion(first), *_motion(second))
            for body in first:
                body.load += force
            for body in second:
                body.load -= force

        builder.loop(pull, **ends)


def add_element_energy(sweep: Sweep[Any, Any], energy: Buffer) -> None:
    """Writes the steps that add the energy of springs between points; bodies must have stored their poses."""
    for element, ends in _elements(sweep):

        def store(
            first: list[View], second: list[View], model: View, total: View, element: PointElement = element
        ) -> None:
            total.energy += np.array([_given(element, model).energy(_pose(first), _pose(second))])

        sweep.builder.loop(store, **ends, total=fields(energy=energy.at(0, 1)))


def _elements(sweep: Sweep[Any, Any]) -> Iterator[tuple[PointElement, dict[str, Any]]]:
    """Springs and dampers with their points in the frames of links, and windows for a kernel over one of them.

    The windows are the memory of its two ends (the ground has none), and its numbers that depend on parameters.
    """
    place = sweep.robot.tree.place
    for element in sweep.robot.elements:
        (first, on_first), (second, on_second) = place[element.first], place[element.second]
        if first != second:
            points = {"first_point": _on_link(on_first, element.first_point)}
            points["second_point"] = _on_link(on_second, element.second_point)
            links = {"first": first, "second": second}
            ends: dict[str, Any] = {x: [sweep.bodies([link])] if link else [] for x, link in links.items()}
            on_links = element.with_numbers(**points)
            model = {x: constants([value]) for x, value in on_links.numbers().items() if not _is_known(value)}
            yield on_links, ends | {"model": fields(**model)}


def _is_known(value: Any) -> bool:
    return all(map(is_known, np.ravel(np.asarray(value, dtype=object))))


def _given(element: PointElement, model: View) -> PointElement:
    """The element, with numbers that depend on parameters taken from the table."""
    varied = [x for x, value in element.numbers().items() if not _is_known(value)]
    return element.with_numbers(**{x: getattr(model, x) for x in varied})


def _on_link(place: Transform, point: np.ndarray) -> np.ndarray:
    """A point of a body in the frame of its link."""
    return place.r + place.E.T @ point


def locate(cluster: Visit[Any, Any]) -> None:
    """Stores poses in the world, and velocities."""
    cluster.remember()
    for body, view in zip(cluster.bodies, cluster.views.bodies, strict=True):
        memory = Moving(view)
        memory.v, memory.E, memory.r = body.v, body.pose.E, body.pose.r


def _unload(body: View) -> None:
    body.load = np.zeros(6)


def _load(body: View, force: View) -> None:
    body.load += force.f


def _pose(end: list[View]) -> Transform:
    return Transform(end[0].E, end[0].r) if end else Transform.identity()


def _motion(end: list[View]) -> tuple[Transform, np.ndarray]:
    """Pose and velocity of an end of a spring."""
    return _pose(end), end[0].v if end else np.zeros(6)

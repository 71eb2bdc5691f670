"""Programs about one frame of a robot, which visit only the clusters between the frame and the ground."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from coupler.model import Robot
from coupler.passes import (
    Body,
    ClusterRecord,
    ClusterShape,
    ClusterWindows,
    Coordinates,
    PathBody,
    Paths,
    Place,
    Sweep,
    Visit,
    entry,
    numbered,
    provided,
    velocities_of,
)
from coupler.spatial import Transform


class FrameBody(PathBody):
    """What a body remembers: its pose, the transform from the world."""

    E, r = entry((3, 3)), entry(3)


class FrameCluster(ClusterRecord):
    rows = Coordinates()  # the cluster's part of each row of a matrix
    motion = provided()  # the velocity of the frame


class Frame:
    """A frame on a link, as the last step of a program sees it.

    Attributes:
        X: the transform from the world to it.
    """

    def __init__(self, place: Transform, link: Transform, along_world: bool) -> None:
        """Args: the transforms link to frame and world to link, and whether motions are along the world's axes."""
        self.X = place @ link
        self._from_link = Transform(link.E.T, place.r) if along_world else place

    def seen(self, motion: Any) -> Any:
        """A motion of the link, at the frame's origin and along the chosen axes."""
        return self._from_link @ motion

    def force_matrix(self) -> Any:
        """Maps forces at the frame, along the chosen axes, to forces on the link."""
        return self._from_link.matrix().T


F_co = TypeVar("F_co", bound=FrameBody, covariant=True)


class FrameSweep(Sweep[F_co, Any], Generic[F_co]):
    """A sweep over the clusters between a frame and the ground.

    Args:
        name: the name of the program.
        link: the link that carries the frame.
        place: the transform from the link to the frame.
        along_world: whether motions are given along the world's axes instead of the frame's.
        body, cluster: the records of bodies and clusters.
    """

    def __init__(
        self,
        robot: Robot,
        name: str,
        link: int,
        place: Transform,
        along_world: bool,
        body: type[F_co] = FrameBody,
        cluster: type[ClusterRecord] = FrameCluster,
    ) -> None:
        way, k = [], robot.cluster_tree.cluster_of[link]
        while k:
            way.append(k)
            k = robot.cluster_tree.clusters[k].parent
        self.link, self.at, self.along_world, self.way = link, place, along_world, way
        super().__init__(
            robot, name, body=body, cluster=cluster, leaf_bodies=True, leaf_clusters=True, oriented=(link,)
        )

    def clusters(self) -> Sequence[int]:
        """The clusters between the ground and the frame."""
        return sorted(self.way)

    def write_result(self, name: str, shape: Any, function: Callable[..., Any], *motions: str) -> None:
        """Adds the last step: an output that is a function of the frame and of motions that its link remembers."""
        self._at_frame(function, motions, Place.whole(self.result(name, int(np.prod(shape))), shape))

    def _at_frame(self, function: Callable[..., Any], motions: Sequence[str], out: Place) -> None:
        def at_frame(E_place: Any, r_place: Any, E: Any, r: Any, *values: Any) -> Any:
            frame = Frame(Transform(E_place, r_place), Transform(E, r), self.along_world)
            return function(frame, *(frame.seen(value) for value in values))

        at_frame.__name__ = function.__name__
        at_rest = [np.eye(3), np.zeros(3), *(np.zeros(6) for _ in motions)]
        link: list[Any] = [self.place(self.link, name) for name in ("E", "r", *motions)] if self.link else at_rest
        schedule = self.schedule()
        schedule.call(at_frame, self.at.E + 0.0, self.at.r + 0.0, *link, out=out)
        schedule.run()

    def matrix(
        self, name: str, function: Callable[[Visit[Any, Any], Sequence[Body[Any]]], Any], *, moving: bool = False
    ) -> None:
        """Adds a 6 × nv output and the pass that computes it, cluster by cluster.

        Args:
            name: the name of the output.
            function: computes a cluster's columns. It takes the cluster and those of its bodies that feel forces at the
                frame; these have χᵀ, their force per unit force at the frame, in their memory.
            moving: whether clusters see the frame's velocity, as `motion` in their memory.
        """
        output, nv = self.result(name, 6 * self.robot.nv), self.robot.nv
        moving_entries = {int(i) for k in self.way for i in velocities_of(self.robot, k)}
        schedule = self.schedule()
        for entry_at_rest in (nv * row + i for row in range(6) for i in range(nv) if i not in moving_entries):
            schedule.clear(Place.of(output, entry_at_rest, ()))
        schedule.run()
        if not self.link:
            return
        motion = self.total("motion", 6) if moving else None
        self.provide = lambda windows, shape, clusters: self._provide_rows(windows, shape, clusters, output)
        paths = Paths(self, [(self.link, self.at)])
        self._at_frame(Frame.force_matrix, (), paths.start(0))
        if motion is not None:
            self._at_frame(lambda frame, v: v, ("v",), Place.whole(motion, 6))

        def along(cluster: Visit[Any, Any], active: Sequence[Body[Any]], felt: Sequence[Body[Any]]) -> None:
            for row, values in enumerate(function(cluster, active)):
                cluster.memory.rows[row] = values
            for output in cluster.outputs:
                if not output.grounded:
                    forces = [body.Xo.transform_force(body.memory.chiT) for body in active if body.output is output]
                    output.memory.chiT = sum(forces, np.zeros((6, 6)))

        paths.inward(along)

    def _provide_rows(self, windows: ClusterWindows, shape: ClusterShape, clusters: Sequence[int], output: Any) -> None:
        tree, nv = self.robot.tree, self.robot.nv
        for i, free in enumerate(shape.free):
            if free:
                links = [self.instances[k].links[i] for k in clusters]
                starts = self.robot.embedding.v_place[tree.v_start[links] + free[0]]
                rows = {numbered("rows", row): output.at(nv * row + starts, len(free)) for row in range(6)}
                windows.joints[i] |= rows

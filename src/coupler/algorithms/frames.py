"""Programs about one frame of a robot: they go over the clusters on its way to the ground alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from coupler.model import Robot
from coupler.passes import (
    Body,
    ClusterRecord,
    ClusterWindows,
    Coordinates,
    PathBody,
    Paths,
    Place,
    Shape,
    Sweep,
    Visit,
    entry,
    numbered,
    provided,
    velocities_of,
)
from coupler.spatial import Transform


class FrameBody(PathBody):
    """What a body remembers: its pose, as the transform from the world."""

    E, r = entry((3, 3)), entry(3)


class FrameCluster(ClusterRecord):
    rows = Coordinates()  # its part of each row of the result
    motion = provided()  # the velocity of the frame


class Frame:
    """A frame on a link, at the end of a program.

    Attributes:
        X: the transform from the world to it.
    """

    def __init__(self, place: Transform, link: Transform, along_world: bool) -> None:
        """Args: transforms from the link to the frame, and from the world to the link, and whose axes are asked for."""
        self.X = place @ link
        self._from_link = Transform(link.E.T, place.r) if along_world else place

    def seen(self, motion: Any) -> Any:
        """A motion of its link, at the frame's origin and along the axes asked for."""
        return self._from_link @ motion

    def force_matrix(self) -> Any:
        """What forces at the frame, along the axes asked for, are for its link."""
        return self._from_link.matrix().T


F_co = TypeVar("F_co", bound=FrameBody, covariant=True)


class FrameSweep(Sweep[F_co, Any], Generic[F_co]):
    """A sweep over the clusters on a frame's way to the ground."""

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
        """Begins a program.

        Args:
            name: of the program.
            link: the link that carries the frame.
            place: the transform from the link to it.
            along_world: whether motions of it are told along the world's axes, not its own.
            body, cluster: what bodies and clusters remember.
        """
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

    def tell(self, name: str, shape: Any, function: Callable[..., Any], *motions: str) -> None:
        """The last step: an output that is a function of the frame and of motions that its link remembers."""
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
        """A matrix with 6 rows, over independent velocities, from a pass along the way.

        Args:
            name: of the output.
            function: gives a cluster's columns. It takes the cluster and those of its bodies on which forces at the
                frame are felt; they have in their memory what these are there, P, by unit of force.
            moving: whether clusters see the frame's velocity, as `motion` in their memory.
        """
        output, nv = self.result(name, 6 * self.robot.nv), self.robot.nv
        own = {int(i) for k in self.way for i in velocities_of(self.robot, k)}
        schedule = self.schedule()
        for entry_at_rest in (nv * row + i for row in range(6) for i in range(nv) if i not in own):
            schedule.call(_zero, out=Place.of(output, entry_at_rest, ()))
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
            for above in cluster.outputs:
                if not above.grounded:
                    passed = [body.Xo.transform_force(body.memory.P) for body in active if body.output is above]
                    above.memory.P = sum(passed, np.zeros((6, 6)))

        paths.inward(along)

    def _provide_rows(self, windows: ClusterWindows, shape: Shape, clusters: Sequence[int], output: Any) -> None:
        tree, nv = self.robot.tree, self.robot.nv
        for i, free in enumerate(shape.free):
            if free:
                links = [self.instances[k].links[i] for k in clusters]
                starts = self.robot.embedding.v_place[tree.v_start[links] + free[0]]
                rows = {numbered("rows", row): output.at(nv * row + starts, len(free)) for row in range(6)}
                windows.joints[i] |= rows


def _zero() -> Any:
    return np.array(0.0)

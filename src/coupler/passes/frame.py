"""Programs about one frame of a robot: they go over the clusters on its way to the ground alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from coupler.graph import View, Window, constants, fields
from coupler.model import Robot
from coupler.passes.climb import velocities_of
from coupler.passes.paths import Paths
from coupler.passes.shape import Instance, Shape
from coupler.passes.sweep import Sweep
from coupler.spatial import Transform

__all__ = ["FrameMotion", "FrameSweep"]


class FrameMotion:
    """A frame while the last step of a program is traced.

    Attributes:
        X: the transform from the world to it.
        here: what the step writes to.
    """

    def __init__(self, here: View, moves: bool, along_world: bool) -> None:
        link = Transform(here.link_E, here.link_r) if moves else Transform.identity()
        place = Transform(here.place_E, here.place_r)
        self.X, self.here, self._moves = place @ link, here, moves
        self._from_link = Transform(link.E.T, place.r) if along_world else place

    def seen(self, name: str) -> Any:
        """A motion that its link remembers, at the frame's origin and along the axes asked for; the ground rests."""
        return self._from_link @ getattr(self.here, f"link_{name}") if self._moves else np.zeros(6)

    @property
    def force_matrix(self) -> Any:
        """What forces at the frame, along the axes asked for, are for its link."""
        return self._from_link.matrix().T


class FrameSweep(Sweep):
    """A sweep over the clusters on a frame's way to the ground. Bodies remember poses, and what else `body` says."""

    def __init__(
        self, robot: Robot, name: str, link: int, place: Transform, along_world: bool, body: Mapping[str, Any]
    ) -> None:
        """Args: a robot, a name, the frame's link, the transform from there to it, and whose axes it is told along."""
        way, k = [], robot.cluster_tree.cluster_of[link]
        while k:
            way.append(k)
            k = robot.cluster_tree.clusters[k].parent
        self.link, self.place, self.along_world, self.way = link, place, along_world, way
        layout = {"E": (3, 3), "r": 3, **body}
        super().__init__(robot, name, body=layout, everybody=True, remembering=True, only=way, turning=(link,))

    def tell(self, function: Callable[[FrameMotion], None], **outputs: Any) -> None:
        """The last step: a function writes outputs, of these shapes, from the motion of the frame."""
        slots = {name: self.result(name, int(np.prod(shape))).at(0, shape) for name, shape in outputs.items()}
        self._at_frame(function, fields(**slots))

    def _at_frame(self, function: Callable[[FrameMotion], None], window: Window) -> None:
        place = fields(place_E=constants([self.place.E + 0.0]), place_r=constants([self.place.r + 0.0]))
        link = {}
        if self.link:
            link = {f"link_{name}": slot for name, slot in self.bodies([self.link]).fields.items()}

        def at_frame(here: View) -> None:
            function(FrameMotion(here, bool(self.link), self.along_world))

        at_frame.__name__ = function.__name__
        self.builder.loop(at_frame, here=place | fields(**link) | window)

    def matrix(self, name: str, function: Callable[..., Any], *, moving: bool = False) -> None:
        """A matrix with 6 rows, over independent velocities, from a pass along the way.

        Args:
            name: of the output.
            function: gives a cluster's columns. It takes the cluster and those of its bodies on which forces at the
                frame are felt; they have in their memory what these are there, P, by unit of force.
            moving: whether clusters see the frame's velocity, as `here.motion`.
        """
        output, nv, tree = self.result(name, 6 * self.robot.nv), self.robot.nv, self.robot.tree
        own = {int(i) for k in self.way for i in velocities_of(self.robot, k)}
        still = [nv * row + i for row in range(6) for i in range(nv) if i not in own]
        if still:
            self.builder.loop(_rest, here=fields(x=output.at(still)))
        if not self.link:
            return
        before, motion = self.extra, self.total("motion", 6) if moving else None

        def rows(shape: Shape, instances: Sequence[Instance], clusters: Sequence[int]) -> dict[str, Any]:
            window = before(shape, instances, clusters)
            for i, free in enumerate(shape.free):
                if free:
                    starts = self.robot.embedding.v_place[tree.v_start[[x.links[i] for x in instances]] + free[0]]
                    window |= {f"row{row}_{i}": output.at(nv * row + starts, len(free)) for row in range(6)}
            return window

        self.extra = rows
        paths = Paths(self, [(self.link, self.place)])

        def begin(frame: FrameMotion) -> None:
            frame.here.P = frame.force_matrix
            if moving:
                frame.here.motion = frame.seen("v")

        start = fields(P=paths.start(0), **({"motion": motion.at(0, 6)} if motion is not None else {}))
        self._at_frame(begin, start)

        def along(cluster: Any, active: Sequence[Any], felt: Sequence[Any]) -> None:
            for row, values in enumerate(function(cluster, active)):
                cluster.write(f"row{row}_", values)
            for output in cluster.outputs:
                if not output.grounded:
                    passed = [body.Xo.transform_force(body.memory.P) for body in active if body.output is output]
                    output.memory.P = sum(passed, np.zeros((6, 6)))

        paths.inward(along)


def _rest(here: View) -> None:
    here.x = np.array(0.0)

"""Where everything in an SDFormat file is when all joints are at zero, and which link carries it.

The pose of a frame is relative to another, and so on up to the world. What a frame is attached to is another such
chain, which ends at a link or at the world.
"""

from __future__ import annotations

from coupler.io.sdf.scopes import Place
from coupler.spatial import Transform


class Placing:
    """Poses and carriers of places, each computed once."""

    def __init__(self) -> None:
        self._poses: dict[Place, Transform] = {}
        self._offsets: dict[Place, Transform] = {}
        self._carriers: dict[Place, Place] = {}
        self._underway: set[Place] = set()

    def pose(self, place: Place) -> Transform:
        """The transform from the world to a place.

        Raises:
            ModelError: for poses that are relative to each other in a circle.
        """
        chain: list[Place] = []
        seen: set[Place] = set()
        while place not in self._poses and place.kind != "world":
            if place in seen:
                raise place.element.error("its pose is relative to itself, by way of others")
            seen.add(place)
            chain.append(place)
            place = self._base(place)
        X = self._poses.get(place, Transform.identity())
        for one in reversed(chain):
            X = self._poses[one] = self._offset(one) @ X
        return X

    def carrier(self, place: Place) -> Place:
        """The link, or the world, that a place moves with.

        Raises:
            ModelError: for frames that are attached to each other in a circle, and to a model without links.
        """
        chain: list[Place] = []
        seen: set[Place] = set()
        while place not in self._carriers and place.kind not in ("link", "world"):
            if place in seen:
                raise place.element.error("it is attached to itself, by way of others")
            seen.add(place)
            chain.append(place)
            place = self._holder(place)
        carrier = self._carriers.get(place, place)
        self._carriers.update(dict.fromkeys(chain, carrier))
        return carrier

    def _base(self, place: Place) -> Place:
        """The place that a place's pose is relative to."""
        if place.base:
            return place.scope.find(place.base, place.element)
        if place.kind in ("joint", "frame") and place.on:
            return place.scope.find(place.on, place.element)
        return place.scope.frame

    def _holder(self, place: Place) -> Place:
        """The place that a frame, a joint or a model is attached to."""
        if place.inside is None:
            return place.scope.find(place.on, place.element) if place.on else place.scope.frame
        canonical = place.element.get("canonical_link")
        if canonical:
            return place.inside.find(canonical, place.element)
        inside = place.inside.places.values()
        for kind in ("link", "model"):
            first = next((one for one in inside if one.kind == kind), None)
            if first is not None:
                return first
        raise place.element.error("something is attached to it, but there is no <link> in it")

    def _offset(self, place: Place) -> Transform:
        """The transform to a place from the place that its pose is relative to."""
        if not place.placement or place.inside is None:
            return place.offset
        if place not in self._offsets:
            if place in self._underway:
                raise place.element.error("its placement frame depends on where it is itself")
            self._underway.add(place)
            X, one, seen = Transform.identity(), place.inside.find(place.placement, place.element), set[Place]()
            while one is not place:
                if one in seen or one.kind == "world":
                    raise place.element.error(f"its placement frame {place.placement!r} is not placed in it")
                seen.add(one)
                X, one = X @ self._offset(one), self._base(one)
            self._offsets[place] = X.inverse() @ place.offset
        return self._offsets[place]

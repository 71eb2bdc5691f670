"""Links of an SDFormat file: bodies, or parts of the ground, with their inertias and shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from coupler.io.reading import add_body, ground_renamed, warn_of_inertias
from coupler.io.sdf.elements import MOMENTS, NAMESPACE, cleaned, number_of, pose_of, truth_of
from coupler.io.sdf.library import Library
from coupler.io.sdf.placing import Placing
from coupler.io.sdf.scopes import Outline, Place, Scope
from coupler.io.sdf.shapes import shapes_of
from coupler.io.xml import Element
from coupler.model import RobotBuilder
from coupler.model.tree import GROUND
from coupler.model.wording import clipped, listed
from coupler.spatial import Transform


class Bodies:
    """The links of a description. Those of static models are parts of the ground.

    Attributes:
        names: the names of the bodies, by the place of their link, in the order of the file.
        places: the place of each body's link, by the name of the body.
    """

    def __init__(self, builder: RobotBuilder, outline: Outline, placing: Placing, library: Library) -> None:
        self._builder, self._outline, self._placing, self._library = builder, outline, placing, library
        self.names: dict[Place, str] = {}
        self.places: dict[str, Place] = {}
        moving = (scope for scope in outline.world.nested.values() if not scope.static)
        self._moving = {scope: i for i, scope in enumerate(moving)}
        self._weightless: list[str] = []  # links that gravity does not pull at
        for link in outline.links:
            if not link.scope.static:
                self._name(link)

    def _name(self, link: Place) -> None:
        name = link.robot_name
        if name == GROUND:
            name = f"{GROUND}_link"
            self._builder.warn(ground_renamed(name))
        if name in self.places:
            raise link.element.error(f"there is a link {clipped(name)} already")
        self.names[link], self.places[name] = name, link

    def on(self, place: Place, frame: Place) -> tuple[str, Transform]:
        """The body that carries a place, and the transform from the body's frame to `frame`."""
        carrier, X = self._placing.carrier(place), self._placing.pose(frame)
        if carrier not in self.names:
            return GROUND, cleaned(X)
        return self.names[carrier], cleaned(X @ self._placing.pose(carrier).inverse())

    def add(self) -> None:
        """Adds all bodies with their shapes."""
        unreal, weightless = [], []
        for link in self._outline.links:
            with link.element.blamed():
                if link in self.names:
                    mass, is_real = self._body(link)
                    if not is_real:
                        (unreal if mass else weightless).append(self.names[link])
                else:
                    for inertial in link.element.all("inertial"):
                        inertial.ignore()
                self._shapes(link)
        warn_of_inertias(self._builder, unreal, weightless)

    def _body(self, link: Place) -> tuple[float, bool]:
        """Adds a body; returns its mass, and whether a real body can have its inertia.

        A link without <inertial> has 1 kg and 1 kg m², as SDFormat defines.
        """
        element, name = link.element, self.names[link]
        inertial, ideal = element.find("inertial"), element.flag(f"{NAMESPACE}:ideal")
        if not truth_of(element, "gravity", True):
            self._weightless.append(name)
        if truth_of(element, "kinematic"):
            raise element.error("it is kinematic, moved by a program; leave that out, or make its model static")
        if inertial is None:
            return 1.0, add_body(self._builder, name, 1.0, np.zeros(3), np.eye(3), ideal=ideal)
        if inertial.flag("auto"):
            raise inertial.error('auto="true" is not supported: write out its mass, pose and inertia')
        X, _ = pose_of(inertial)
        moments, mass = [1.0, 0.0, 0.0, 1.0, 0.0, 1.0], number_of(inertial, "mass", 1.0)
        given, exact = inertial.find("inertia"), inertial.find(f"{NAMESPACE}:inertial")
        if given is not None:
            moments = [number_of(given, tag, usual) for tag, usual in zip(MOMENTS, moments, strict=True)]
        if exact is not None:
            mass, moments = exact.number("mass"), exact.numbers("inertia", 6).tolist()
        xx, xy, xz, yy, yz, zz = moments
        I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])  # noqa: E741
        return mass, add_body(self._builder, name, mass, X.r, X.E.T @ I @ X.E, ideal=ideal)

    def _shapes(self, link: Place) -> None:
        body, X = self.on(link, link)

        def place(element: Element) -> Transform:
            offset, base = pose_of(element)
            if not base:
                return cleaned(offset @ X)
            return self.on(link, Place("frame", "", link.scope, element, offset, base))[1]

        resolve = self._library.resolver(link.element.file)
        for shape in shapes_of(link.element, self._bits(link), place, resolve):
            self._builder.shape(body, **shape)

    def _bits(self, link: Place) -> tuple[int, int]:
        """The group of a link's shapes, and the groups that they meet: links of one model meet only if it says so."""
        top = link.scope.top
        if link not in self.names or any(truth_of(part, "self_collide") for part in (top.element, link.element)):
            return 1, -1 if link not in self.names else 1
        group = 2 << self._moving[top]
        return group, ~group

    def spring(self, element: Element, scope: Scope) -> dict[str, Any]:
        """A spring between two links, as arguments of `RobotBuilder.spring`."""
        figures: dict[str, Any] = {
            name: element.number(name, 0.0) for name in ("stiffness", "free_length", "pretension", "damping")
        }
        for tag, body, point in (("predecessor", "first", "at"), ("successor", "second", "meets")):
            end = element.need(tag)
            name = end.require("link")
            figures[body] = name if name == GROUND else scope.prefix + name
            origin = end.find("origin")
            figures[point] = np.zeros(3) if origin is None else origin.numbers("xyz", 3)
        return figures | {"name": scope.prefix + element.require("name")}

    def warn(self) -> None:
        """Warns of properties of shapes and links that robots do not have."""
        if self._weightless:
            self._builder.warn(f"gravity is not switched off for {listed(self._weightless)}: it acts on all bodies")
        for resolve in self._library.resolvers():
            for text in resolve.warnings():
                self._builder.warn(text)

"""What an SDFormat file names, and in which scope: models, links, joints and frames, wherever files include others.

A scope is the world or a model. Names are looked up in the scope where they stand; `arm::wrist` leads into a model that
is nested in it. A model that is merged into another has its own scope and shares the other's names.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from coupler.io.limits import BODIES, NESTED
from coupler.io.sdf.elements import name_in_robot, pose_of, truth_of, word_of
from coupler.io.sdf.library import Absent, Library, version_of
from coupler.io.xml import Element
from coupler.model.wording import clipped, listed
from coupler.spatial import Transform

_PARTS = ("link", "joint", "frame", "model", "include")


@dataclass(eq=False)
class Place:
    """A frame that a file names: of the world, a model, a link or a joint, or a <frame>.

    Attributes:
        kind: "world", "model", "link", "joint" or "frame".
        name: the name in the file.
        scope: the scope in which `base` and `on` are looked up.
        element: the element that describes the place.
        offset: the transform in its <pose>.
        base: the name of the frame that `offset` is relative to; empty for the default.
        on: the name of the place that a frame is attached to, if the file gives it, or the child of a joint.
        inside: the scope of a model.
        placement: the name of the frame inside a model that the model's pose places; empty for the model's own.
    """

    kind: str
    name: str
    scope: Scope
    element: Element
    offset: Transform = field(default_factory=Transform.identity)
    base: str = ""
    on: str = ""
    inside: Scope | None = None
    placement: str = ""

    @property
    def robot_name(self) -> str:
        """The place's name in the robot, which begins with the names of the models that contain it."""
        return self.scope.prefix + (name_in_robot(self.element) or self.name)


@dataclass(eq=False)
class Scope:
    """The world, or a model.

    Attributes:
        name: the model's name.
        element: the element that describes the model.
        version: the version of the model's file.
        parent: the scope that contains this one; None for the world.
        static: whether the model, or one that contains it, is static.
        merged: whether the model shares the names of its parent.
        alone: whether it is the only model, so that names in the robot need not begin with its name.
        places: everything in the scope that has a name.
        nested: the models in this one.
        frame: the frame of the model or world.
    """

    name: str
    element: Element
    version: tuple[int, int]
    parent: Scope | None = None
    static: bool = False
    merged: bool = False
    alone: bool = False
    places: dict[str, Place] = field(default_factory=dict)
    nested: dict[str, Scope] = field(default_factory=dict)
    frame: Place = field(init=False)

    @property
    def prefix(self) -> str:
        """The beginning of the scope's names in the robot."""
        if self.parent is None or self.alone:
            return ""
        return self.parent.prefix if self.merged else f"{self.parent.prefix}{self.name}::"

    @property
    def top(self) -> Scope:
        """The outermost model that contains this scope; the world itself for the world."""
        scope = self
        while scope.parent is not None and scope.parent.parent is not None:
            scope = scope.parent
        return scope

    def find(self, name: str, element: Element) -> Place:
        """The place with this name.

        Raises:
            ModelError: if there is none, naming the element that refers to it.
        """
        scope: Scope | None = self
        while scope is not None:
            place = scope._lookup(name)
            if place is not None:
                return place
            scope = scope.parent if scope.merged else None
        raise element.error(f"there is no frame {clipped(name)} in {self}; there are {listed(self.places)}")

    def joint_name(self, name: str) -> str:
        """A joint's name in the robot; unknown names stay as they are."""
        place = self._lookup(name)
        return self.prefix + name if place is None or place.kind != "joint" else place.robot_name

    def _lookup(self, name: str) -> Place | None:
        if name in self.places:
            return self.places[name]
        if name == "__model__":
            return self.frame
        if name in ("world", "__root__"):
            scope = self
            while scope.parent is not None:
                scope = scope.parent
            return scope.frame
        first, _, rest = name.partition("::")
        return self.nested[first]._lookup(rest) if rest and first in self.nested else None

    def add(self, place: Place) -> None:
        """Adds a place under its name.

        Files before 1.7 may have a link and a joint of the same name: the name then means the link.
        """
        scope: Scope | None = self
        while scope is not None:
            other = scope.places.get(place.name)
            if other is not None and other.kind == place.kind:
                raise place.element.error(f"there is a {place.kind} of this name already, in line {other.element.line}")
            if other is None or place.kind == "link":
                scope.places[place.name] = place
            scope = scope.parent if scope.merged else None

    def __str__(self) -> str:
        return f"model {clipped(self.name)}" if self.parent else "the world"


@dataclass(eq=False)
class Outline:
    """The outline of a description: its scopes, and lists of its parts.

    Attributes:
        world: the scope of the world.
        links, joints, frames, models: all of them, in the order of the file.
        absent: each <include> whose model is missing.
        standing: whether all models are static, so that the robot does not move.
    """

    world: Scope
    links: list[Place] = field(default_factory=list)
    joints: list[Place] = field(default_factory=list)
    frames: list[Place] = field(default_factory=list)
    models: list[Scope] = field(default_factory=list)
    absent: list[Element] = field(default_factory=list)
    standing: bool = False


def outline_of(root: Element, library: Library) -> Outline:
    """The outline of what a file describes.

    Raises:
        ModelError: for a file without a model, with several worlds, with names that are not its own, and for one that
            is too large or includes itself.
    """
    version = version_of(root)
    worlds, models = root.all("world"), root.all("model")
    if len(worlds) > 1 or (worlds and models):
        names = listed(part.get("name") for part in (*worlds, *models))
        raise root.error(f"it holds {names}; a file may hold one <world>, or models without one: keep what you want")
    world = Scope("", worlds[0] if worlds else root, version)
    world.frame = Place("world", "world", world, world.element)
    outline = Outline(world)
    _fill(world, outline, library, 0)
    moving = [scope for scope in world.nested.values() if not scope.static]
    if not world.nested:
        absent = listed(word_of(include, "uri") for include in outline.absent)
        raise world.element.error(f"there is no <model> in it{f'; {absent} is not there' if absent else ''}")
    if not moving:  # then what stands still is the robot
        moving = list(world.nested.values())
        outline.standing = True
        for scope in outline.models:
            scope.static = False
    if len(moving) == 1:
        moving[0].alone = True
    return outline


def _fill(scope: Scope, outline: Outline, library: Library, depth: int) -> None:
    """Adds everything in a scope."""
    if depth > NESTED:
        raise scope.element.error(f"it is within {NESTED} other models, the most that are read")
    for element in scope.element.all(*_PARTS):
        if element.tag == "include":
            _include(element, scope, outline, library, depth)
        elif element.tag == "model":
            _model(element, None, scope, scope.version, outline, library, depth)
        elif element.tag != "link" or scope.parent is not None:
            _part(element, scope, outline)


def _part(element: Element, scope: Scope, outline: Outline) -> None:
    """Adds a link, a joint or a frame."""
    name = _valid_name(element)
    offset, base = pose_of(element)
    on = element.get("attached_to") if element.tag == "frame" else ""
    if element.tag == "joint":
        on = element.need("child").word() or element.need("child").require("link")
    place = Place(element.tag, name, scope, element, offset, base, on)
    scope.add(place)
    parts = {"link": outline.links, "joint": outline.joints, "frame": outline.frames}[element.tag]
    parts.append(place)
    if len(parts) > BODIES:
        raise element.error(f"there are more than {BODIES} {element.tag}s, the most that are read")


def _valid_name(element: Element) -> str:
    name = element.require("name")
    if name == "world" or (name.startswith("__") and name.endswith("__")):
        raise element.error("its name is reserved in SDFormat: choose another")
    return name


def _include(include: Element, scope: Scope, outline: Outline, library: Library, depth: int) -> None:
    """Adds a model from another file. Models missing from a world, such as a sun, are noted and left out."""
    try:
        root, model = library.included(include)
    except Absent:
        if scope.parent is not None:
            raise
        outline.absent.append(include)
        include.ignore()
        return
    around: Scope | None = scope
    while around is not None:
        if around.element is model:
            raise include.error(f"the model {clipped(model.get('name'))} includes itself")
        around = around.parent
    _model(model, include, scope, version_of(root), outline, library, depth)


def _model(
    element: Element,
    include: Element | None,
    parent: Scope,
    version: tuple[int, int],
    outline: Outline,
    library: Library,
    depth: int,
) -> None:
    """Adds a model; an <include> may override its name, its pose and whether it is static."""
    by = include if include is not None else element
    element.get("name")
    name = (word_of(include, "name") if include is not None else "") or _valid_name(element)
    static = parent.static or truth_of(by, "static", truth_of(element, "static"))
    merged = include is not None and include.flag("merge")
    scope = Scope(name, element, version, parent, static, merged)
    offset, base = pose_of(by if by.find("pose") is not None else element)
    placement = element.get("placement_frame")
    if include is not None:
        placement = word_of(include, "placement_frame") or placement
    scope.frame = Place("model", name, parent, element, offset, base, inside=scope, placement=placement)
    if name in parent.nested:
        raise by.error(f"there is a model {clipped(name)} in {parent} already; give one of them another <name>")
    parent.nested[name] = scope
    outline.models.append(scope)
    if len(outline.models) > BODIES:
        raise by.error(f"there are more than {BODIES} models, the most that are read")
    if not merged:
        parent.add(scope.frame)
    _fill(scope, outline, library, depth + 1)

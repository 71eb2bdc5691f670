"""Reading SDFormat: a file, with what it includes, becomes a robot; a warning lists what is not modelled.

`scopes` finds what there is and what it is called, `placing` where it is, `bodies` what it weighs and looks like, and
`tree` how it moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from coupler.io.actuators import read_actuator
from coupler.io.contact_pairs import read_contact_pair
from coupler.io.limits import KEYFRAMES
from coupler.io.reading import Options, read_keyframe, warn_left_out
from coupler.io.sdf.bodies import Bodies
from coupler.io.sdf.elements import NAMESPACE
from coupler.io.sdf.library import NEWEST, Library, version_of
from coupler.io.sdf.placing import Placing
from coupler.io.sdf.scopes import Outline, Scope, outline_of
from coupler.io.sdf.tree import JointTree
from coupler.io.transmissions import LinkOf
from coupler.io.xml import Element
from coupler.model import RobotBuilder
from coupler.model.tree import GROUND
from coupler.model.wording import listed

_GRAVITY = (0.0, 0.0, -9.8)  # m/s²: that of a world which gives none
_SCENERY = ("light", "scene", "gui", "physics", "spherical_coordinates", "magnetic_field", "atmosphere", "audio")
_MARKS = ("enable_wind", "allow_auto_disable", "self_collide", "must_be_base_link")  # of links and models


def read_sdf(root: Element, options: Options) -> tuple[RobotBuilder, dict[str, Element], list[Element]]:
    """The robot that a file describes, ready to be built.

    Args:
        root: the root element of the main file.
        options: how to read it.

    Returns:
        The builder; the elements of the robot's parts, by name; and the root elements of all files that were read.

    Raises:
        ModelError: for a file that cannot be read; it names file, line and element.
    """
    if options.closures not in (None, False):
        raise root.error("SDFormat has its loops as joints; closures are for URDF")
    library = Library(root, options.packages)
    reader = _Reader(root, options, library, outline_of(root, library))
    reader.read()
    return reader.builder, reader.elements, library.roots


class _Reader:
    """Reads one file, with what it includes.

    Attributes:
        builder: the builder of the robot.
        elements: the elements that describe the parts of the robot, by name.
    """

    def __init__(self, root: Element, options: Options, library: Library, outline: Outline) -> None:
        self.options, self.library, self.outline, self.placing = options, library, outline, Placing()
        alone = [scope for scope in outline.world.nested.values() if scope.alone]
        name = alone[0].frame.robot_name if alone else outline.world.element.get("name")
        with root.blamed():
            gravity = self._gravity()
            self.builder = RobotBuilder(name or root.file.stem, gravity if options.gravity is None else options.gravity)
        self.bodies = Bodies(self.builder, outline, self.placing, library)
        self.elements: dict[str, Element] = {}

    def read(self) -> None:
        self.bodies.add()
        tree = JointTree(self.builder, self.outline, self.placing, self.bodies)
        tree.add(floating=self.options.floating)
        self.elements |= {name: place.element for name, place in (tree.places | self.bodies.places).items()}
        self._frames()
        self._states()
        self._warn()

    def _frames(self) -> None:
        grounded = []
        for place in self.outline.frames:
            body, at = self.bodies.on(place, place)
            name, role = place.robot_name, place.element.get(f"{NAMESPACE}:as", "frame")
            with place.element.blamed():
                if body == GROUND:
                    grounded.append(name)
                elif role == "contact":
                    self.builder.contact(name, body, at.r)
                else:
                    self.builder.frame(name, body, at)
        if grounded:
            self.builder.remark(f"frames that are fixed to the world are left out: {listed(grounded)}")

    def _states(self) -> None:
        """Adds what SDFormat lacks and coupler's elements give: springs, actuators, contact pairs and named states."""
        count = 0
        for scope in self.outline.models:
            for element in scope.element.all(f"{NAMESPACE}:exclude"):
                links = [element.require(end) for end in ("link1", "link2")]
                with element.blamed():
                    self.builder.exclude(*(link if link == GROUND else scope.prefix + link for link in links))
            for element in scope.element.all(f"{NAMESPACE}:contact_pair"):
                with element.blamed():
                    self.builder.contact_pair(**read_contact_pair(element))
            for element in scope.element.all(f"{NAMESPACE}:spring"):
                with element.blamed():
                    self.builder.spring(**self.bodies.spring(element, scope))
            for element in scope.element.all(f"{NAMESPACE}:actuator"):
                with element.blamed():
                    self.builder.actuator(**read_actuator(element, self._link_of(scope), scope.prefix))
            for element in scope.element.all(f"{NAMESPACE}:keyframe"):
                count += 1
                if count > KEYFRAMES:
                    raise element.error(f"there are more than {KEYFRAMES} keyframes; a file may have {KEYFRAMES}")
                with element.blamed():
                    self.builder.keyframe(*read_keyframe(element, scope.prefix))

    def _link_of(self, scope: Scope) -> LinkOf:
        """Gives the name of a link that an element of a model names."""
        return lambda link, _: link if link == GROUND else scope.prefix + link

    def _gravity(self) -> Sequence[float]:
        """Gravity of the world (in <physics> up to SDFormat 1.5), or the default for a model without a world."""
        world = self.outline.world.element
        if world.tag != "world":
            return 0.0, 0.0, -9.81
        candidates = [world.find("gravity"), *(physics.find("gravity") for physics in world.all("physics"))]
        given = next((element for element in candidates if element is not None and element.word()), None)
        return _GRAVITY if given is None else given.values(3).tolist()

    def _warn(self) -> None:
        """Warns of what is left out."""
        self.bodies.warn()
        if self.outline.absent:
            names = listed(include.need("uri").word() for include in self.outline.absent)
            self.builder.warn(
                f"included models not found, and left out: {names}; name their folders in packages={{...}}"
            )
        world = self.outline.world.element
        for scenery in world.all(*_SCENERY):
            scenery.ignore()
        for part in (*(scope.element for scope in self.outline.models), *(link.element for link in self.outline.links)):
            for mark in part.all(*_MARKS, *_SCENERY):
                mark.ignore()
        left_out: Counter[str] = Counter()
        for root in self.library.roots:
            if version_of(root) > NEWEST:
                self.builder.warn(f"{root.file.name} is SDFormat {root.get('version')}, which is read as 1.11")
            for name in root.attributes:
                if name.startswith("xmlns") or name == f"{NAMESPACE}:precision":
                    root.get(name)
            world.get("name")
            left_out += root.unread()
        warn_left_out(self.builder, left_out)

"""The joints of an SDFormat file: a tree of them, with loops and couplings, and what floats.

A joint's frame is given on its child. On the parent it is where the child's is as the file poses the robot, with all
joints at zero; so every loop is closed there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coupler.io.mimics import Mimic, sorted_mimics
from coupler.io.sdf.bodies import Bodies
from coupler.io.sdf.couplings import Carried, Couplings, read_mimic
from coupler.io.sdf.elements import NAMESPACE, cleaned, truth_of
from coupler.io.sdf.joints import Motion, axis_of, read_lists, read_motion
from coupler.io.sdf.placing import Placing
from coupler.io.sdf.scopes import Outline, Place
from coupler.io.sdf.spanning import Edge, Spanning, spanning_tree
from coupler.io.taken_names import TakenNames
from coupler.io.urdf.elements import is_identity
from coupler.io.urdf.origins import origin
from coupler.model import Fixed, Free, RobotBuilder
from coupler.model.tree import GROUND
from coupler.model.wording import clipped, listed
from coupler.rotation import quaternion_from_matrix, unit
from coupler.spatial import Transform

_Z = np.array([0.0, 0.0, 1.0])


class JointTree:
    """The joints of a description.

    Attributes:
        places: the places of all joints but gearboxes, by name.
        motions: how each joint moves.
        ends: the links that each joint connects, and the transforms from these to the joint.
        carried: the joints of the tree, by the link that each carries.
    """

    def __init__(self, builder: RobotBuilder, outline: Outline, placing: Placing, bodies: Bodies) -> None:
        self.builder, self.outline, self.placing, self.bodies = builder, outline, placing, bodies
        self.places: dict[str, Place] = {}
        self.motions: dict[str, Motion] = {}
        self.ends: dict[str, tuple[tuple[str, Transform], tuple[str, Transform]]] = {}
        self.carried: dict[str, Carried] = {}

    def add(self, *, floating: bool) -> None:
        """Adds all joints, loops and couplings to the robot.

        Args:
            floating: whether the user wants the robot to float; it does anyway unless a joint connects it to the world.
        """
        moving = [place for place in self.outline.joints if not (place.scope.static or self.outline.standing)]
        for place in set(self.outline.joints) - set(moving):
            place.element.ignore()  # nothing moves there
        gearboxes = [place for place in moving if place.element.get("type") == "gearbox"]
        for place in moving:
            if place.element.get("type") != "gearbox":
                with place.element.blamed():
                    self._joint(place)
        mimics = self._mimics()
        tree = self._tree(gearboxes, mimics)
        if floating and not tree.roots:
            raise self.outline.world.element.error(
                "floating=True is for a robot that may float, but joints connect all of this one to the world"
            )
        self._float(tree.roots)
        self._carry(tree)
        self._close(tree)
        self._couple(gearboxes, mimics)

    def _joint(self, place: Place) -> None:
        """Reads how a joint moves, and what it connects."""
        element = place.element
        parent = place.scope.find(element.need("parent").word() or element.need("parent").require("link"), element)
        child = place.scope.find(place.on, element)
        ends = [self.bodies.on(end, place) for end in (parent, child)]
        name = place.robot_name
        if name in self.places:
            raise element.error(f"there is a joint {clipped(name)} already")
        if ends[0][0] == ends[1][0]:
            raise element.error(f"its parent and its child are both on {ends[0][0]!r}")
        self.motions[name] = read_motion(element, self._axes(place))
        self.ends[name] = ends[0], ends[1]
        self.places[name] = place

    def _axes(self, place: Place) -> list[np.ndarray]:
        """The directions of both axes in the joint's frame; z where none is given."""

        def find(name: str) -> Transform:
            return self.placing.pose(place.scope.find(name, place.element))

        joint, axes = self.placing.pose(place), list[np.ndarray]()
        for tag in ("axis", "axis2"):
            axis = place.element.find(tag)
            axes.append(_Z if axis is None else axis_of(axis, place.scope.version, joint, find))
        return axes

    def _mimics(self) -> list[Mimic]:
        """The joints that mimic others; joints that mimic a fixed joint become fixed."""
        mimics = list[Mimic]()
        for name, place in self.places.items():
            for axis in place.element.all("axis", "axis2"):
                for element in axis.all("mimic"):
                    mimics.append(read_mimic(name, element, place.scope))
        found = sorted_mimics(mimics, [name for name, motion in self.motions.items() if motion.word == "fixed"])
        for name, position in found.held.items():
            (parent, on_parent), child = self.ends[name]
            at = self.motions[name].kind(plain=True).transform(np.array([position])) @ on_parent
            self.motions[name], self.ends[name] = Motion("fixed"), ((parent, cleaned(at)), child)
        for warning in found.warnings:
            self.builder.warn(warning)
        return found.moving

    def _tree(self, gearboxes: Sequence[Place], mimics: Sequence[Mimic]) -> Spanning:
        """Chooses the joints of the tree."""
        needed = self._coupled_joints() | {name for mimic in mimics for name in (mimic.follower, mimic.leader)}
        geared: set[frozenset[str]] = set()  # links that turn against each other where gears need it
        for place in gearboxes:
            ends = self._gear_ends(place)
            geared |= {frozenset([ends["reference"], ends[end]]) for end in ("parent", "child")}
        edges = []
        for name, motion in self.motions.items():
            (parent, _), (child, _) = self.ends[name]
            marked = motion.independent or motion.actuated or bool(motion.properties)
            loaded = marked or name in needed or frozenset([parent, child]) in geared
            edges.append(Edge(name, parent, child, motion.freedoms, loaded, self._must_close(name)))
        floating = [name for name, place in self.bodies.places.items() if place.element.all(f"{NAMESPACE}:floating")]
        models = [scope for scope in self.outline.models if not scope.static and scope.places]
        canonical = [self.placing.carrier(scope.frame) for scope in models if _has_links(scope.frame)]
        preferred = [self.bodies.names[link] for link in canonical if link in self.bodies.names]
        return spanning_tree(list(self.bodies.names.values()), edges, [*floating, *preferred])

    def _coupled_joints(self) -> set[str]:
        """The joints that couplings name."""
        related: set[str] = set()
        for scope in self.outline.models:
            for coupling in scope.element.all(f"{NAMESPACE}:coupling"):
                for part in coupling.walk():
                    related.add(scope.prefix + (part.get("name") if part.has("name") else part.get("joint")))
        return related

    def _must_close(self, name: str) -> bool:
        """Whether the file asks that a joint close a loop; its other settings for solvers are ignored."""
        physics = self.places[name].element.find("physics")
        simbody = None if physics is None else physics.find("simbody")
        closes = simbody is not None and truth_of(simbody, "must_be_loop_joint")
        if physics is not None:
            physics.ignore()
        return closes

    def _float(self, roots: Sequence[str]) -> None:
        """Gives every part that is not connected to the ground a free joint; static parts are fixed."""
        taken = TakenNames(self.motions)
        for name in roots:
            place = self.bodies.places[name]
            X = self.placing.pose(place)
            with place.element.blamed():
                if self.outline.standing:
                    self.builder.joint(taken.new(f"{GROUND}_to_{name}"), Fixed(), GROUND, name, cleaned(X))
                    continue
                start = np.concatenate([X.r, quaternion_from_matrix(X.E.T)])
                extras = place.element.find(f"{NAMESPACE}:floating")
                if extras is None:
                    usual = "floating_base" if len(roots) == 1 else f"{name}_floating"
                    self.builder.joint(taken.new(usual), Free(), GROUND, name, start=start)
                    continue
                self.builder.joint(
                    place.scope.prefix + extras.require("name"),
                    Free(**read_lists(extras)),
                    GROUND,
                    name,
                    origin(extras),
                    start=extras.numbers("position", 7, start.tolist()),
                    meets=origin(extras, "meets") if extras.all("meets") else None,
                    independent=extras.flag("independent"),
                    actuated=extras.flag("actuated"),
                )

    def _carry(self, tree: Spanning) -> None:
        """Adds the joints of the tree, each from the link that carries to the one that is carried."""
        closing, reversed_joints = set(tree.closing), list[str]()
        for name, motion in self.motions.items():
            if name in closing:
                continue
            (parent, on_parent), (child, on_child) = self.ends[name]
            link = child if tree.carried.get(child, ("",))[0] == name else parent
            place = self.places[name]
            with place.element.blamed():
                if motion.position is not None:
                    there = motion.kind(plain=True).valid_position("position", motion.position)
                    if there is None:
                        raise place.element.error("its position has no quaternion of finite length")
                    on_parent = cleaned(motion.kind(plain=True).transform(there).inverse() @ on_parent)
                if link == parent:
                    motion, on_parent, on_child = motion.turned_round(), on_child, on_parent
                    parent, child = child, parent
                    reversed_joints.append(name)
                meets = None if is_identity(on_child) else on_child
                self.builder.joint(
                    name,
                    motion.kind(),
                    parent,
                    child,
                    on_parent,
                    independent=motion.independent,
                    actuated=motion.actuated,
                    start=motion.position,
                    meets=meets,
                )
            axis = self._world_axis(place, motion)
            self.carried[child] = Carried(name, motion, parent, child, axis)
        if reversed_joints:
            self.builder.remark(f"the tree goes from child to parent by {listed(reversed_joints)}")

    def _world_axis(self, place: Place, motion: Motion) -> np.ndarray:
        """The direction of a joint's axis in the world, in the pose that the file describes."""
        if not motion.axes:
            return np.zeros(3)
        return self.placing.pose(place).E.T @ unit(motion.axes[0])

    def _close(self, tree: Spanning) -> None:
        """Adds the joints that close loops."""
        lost = []
        for name in tree.closing:
            (parent, on_parent), (child, on_child) = self.ends[name]
            with self.places[name].element.blamed():
                self.builder.loop(name, self.motions[name].kind(plain=True), parent, child, on_parent, on_child)
            lost += [name] if self.motions[name].properties else []
        if lost:
            self.builder.warn(
                f"limits, springs, damping and friction are left out of joints that close loops: {listed(lost)}"
            )
        if tree.closing:
            self.builder.remark(f"loops are closed by {listed(tree.closing)}; the other joints make a tree")

    # Couplings

    def _gear_ends(self, place: Place) -> dict[str, str]:
        """The links that a gearbox connects."""
        element, ends = place.element, dict[str, str]()
        for end, tag in (("parent", "parent"), ("child", "child"), ("reference", "gearbox_reference_body")):
            link = place.scope.find(element.need(tag).word(), element)
            ends[end] = self.bodies.on(link, place)[0]
        return ends

    def _couple(self, gearboxes: Sequence[Place], mimics: Sequence[Mimic]) -> None:
        couplings = Couplings(self.builder, self.carried)
        for mimic in mimics:
            couplings.mimic(mimic)
        for scope in self.outline.models:
            for element in scope.element.all(f"{NAMESPACE}:coupling"):
                couplings.general(element, scope)
        for place in gearboxes:
            E = self.placing.pose(place).E
            first, second = self._axes(place)
            axes = [E.T @ first, E.T @ (first if place.element.find("axis2") is None else second)]
            if not all(axis.any() for axis in axes):
                raise place.element.error("its axes must not be zero")
            couplings.gearbox(place.robot_name, place.element, self._gear_ends(place), [unit(axis) for axis in axes])
            for part in place.element.all("axis", "axis2", "physics"):
                part.ignore()


def _has_links(model: Place) -> bool:
    """Whether there is a link in a model, or in a model that is nested in it."""
    pending = [model]
    for place in pending:  # which grows while it is iterated
        for inside in place.inside.places.values() if place.inside is not None else ():
            if inside.kind == "link":
                return True
            pending += [inside] if inside.kind == "model" else []
    return False

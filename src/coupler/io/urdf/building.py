"""Building a robot from the description of a URDF file."""

from __future__ import annotations

from coupler.io.reading import Options, add_body, warn_left_out, warn_of_inertias
from coupler.io.urdf.description import Description
from coupler.io.urdf.joints import joint_kind
from coupler.io.urdf.parts import JointPart, LinkPart
from coupler.model import Fixed, Free, ModelError, RobotBuilder, Transmission
from coupler.model.tree import GROUND
from coupler.spatial import Transform


def builder_of(d: Description, options: Options) -> RobotBuilder:
    """The robot that a file describes, ready to be built.

    Raises:
        ModelError: for what cannot be built; it names the line.
    """
    root = d.check_tree()
    gravity = d.gravity if options.gravity is None else options.gravity
    with d.root.blamed():
        b = RobotBuilder(d.name, gravity)
    _Parts(d, b).add(root, floating=options.floating)
    return b


class _Parts:
    """Adds the parts of a description to a builder.

    Attributes:
        seats: for links whose joint does not meet the link's own frame, the frame on the link that it meets.
    """

    def __init__(self, d: Description, b: RobotBuilder) -> None:
        self.d, self.b = d, b
        self.seats = {joint.child: joint.meets for joint in d.joints.values() if joint.meets is not None}

    def add(self, root: str, *, floating: bool) -> None:
        """Adds everything. `root` is the link that no joint carries."""
        d, b = self.d, self.b
        self._add_links(root)
        if root != GROUND:
            self._carry_root(root, floating=floating)
        elif floating:
            raise d.links[root].element.error("the root is the ground, which cannot float")
        for joint in d.joints.values():
            if d.links[joint.child].role == "body":
                with joint.element.blamed():
                    self._add_joint(joint)
        self._add_constraints()
        self._add_actuators()
        for pair in d.exclusions:
            b.exclude(*pair)
        for element, contact_pair in d.contact_pairs:
            with element.blamed():
                b.contact_pair(**contact_pair)
        for element, name, positions, velocities in d.keyframes:
            with element.blamed():
                b.keyframe(name, positions, velocities)
        for warning in d.warnings:
            b.warn(warning)
        for remark in d.remarks:
            b.remark(remark)
        warn_left_out(b, d.left_out)

    # Links

    def _add_links(self, root: str) -> None:
        unreal, weightless = list[str](), list[str]()
        carrying = {joint.parent for joint in self.d.joints.values()}
        for name, link in self.d.links.items():
            seat = self.seats.get(name, Transform.identity())
            with link.element.blamed():
                if name == GROUND and name == root:
                    if link.mass:
                        self.b.warn(f"the mass of {GROUND!r} is ignored: it does not move")
                    self._add_shapes(name, link, seat)
                elif link.role == "body":
                    R = seat.E.T
                    inertia = link.mass, seat.r + R @ link.centre, R @ link.inertia @ R.T
                    if not add_body(self.b, name, *inertia, ideal=link.ideal):
                        (unreal if link.mass else weightless).append(name)
                    self._add_shapes(name, link, seat)
                else:
                    if name in carrying:
                        raise ModelError(f"a {link.role} must hang on a fixed joint and carry nothing")
                    if link.mass or link.inertia.any() or link.shapes:
                        raise ModelError(f"a {link.role} has neither mass nor shapes: leave out as={link.role!r}")
                    self._add_frame(name, link.role, self.d.carrier(name))
        warn_of_inertias(self.b, unreal, weightless)

    def _add_shapes(self, name: str, link: LinkPart, seat: Transform) -> None:
        for shape in link.shapes:
            self.b.shape(name, **(shape | {"at": shape["at"] @ seat}))

    def _add_frame(self, name: str, role: str, joint: JointPart | None) -> None:
        """Adds a frame or a contact point, which is written as a link on a fixed joint."""
        if joint is None or joint.kind != "fixed":
            raise ModelError(f"a {role} must hang on a fixed joint and carry nothing")
        at = joint.at @ self.seats.get(joint.parent, Transform.identity())
        if role == "contact":
            self.b.contact(name, joint.parent, at.r)
        else:
            self.b.frame(name, joint.parent, at)

    # Joints

    def _carry_root(self, root: str, *, floating: bool) -> None:
        d, b = self.d, self.b
        if not floating:
            b.joint(d.new_name(f"ground_to_{root}"), Fixed(), GROUND, root)
            return
        free = [joint for joint in d.joints.values() if joint.parent == root and joint.kind == "floating"]
        if free:
            raise free[0].element.error("the robot floats by this joint already: leave out floating=True")
        name = d.new_name("floating_base")
        if name != "floating_base":
            b.warn(f"the robot floats by the joint {name!r}: the file has a joint 'floating_base' already")
        b.joint(name, Free(), GROUND, root)

    def _add_joint(self, joint: JointPart) -> None:
        seat = self.seats.get(joint.parent)
        self.b.joint(
            joint.name,
            joint_kind(joint.kind, joint.axes, joint.pitch, joint.properties),
            joint.parent,
            joint.child,
            joint.at if seat is None else joint.at @ seat,
            independent=bool(joint.independent),
            actuated=joint.actuated,
            start=joint.start,
            meets=joint.meets,
        )

    # Constraints and actuators

    def _on_body(self, link: str, at: Transform) -> tuple[str, Transform]:
        """The body that carries a frame of a link, and the frame relative to the body's own."""
        joint = self.d.carrier(link)
        if self.d.links[link].role != "body" and joint is not None:
            link, at = joint.parent, at @ joint.at
        return link, at @ self.seats[link] if link in self.seats else at

    def _place_on_body(self, link: str, at: Transform) -> Transform:
        return self._on_body(link, at)[1]

    def _add_constraints(self) -> None:
        d, b = self.d, self.b
        for loop in d.loops:
            with (loop.element or d.root).blamed():
                (first, at), (second, meets) = (
                    self._on_body(loop.first, loop.at),
                    self._on_body(loop.second, loop.meets),
                )
                b.loop(loop.name, loop.kind, first, second, at, meets)
        for coupling in d.couplings:
            with (coupling.element or d.root).blamed():
                b.couple(coupling.name, coupling.joints, coupling.function, coupling.independent)
        for element, spring in d.springs:
            first, at = self._on_body(spring["first"], Transform.translation(spring["at"]))
            second, meets = self._on_body(spring["second"], Transform.translation(spring["meets"]))
            with element.blamed():
                b.spring(**(spring | {"first": first, "at": at.r, "second": second, "meets": meets.r}))

    def _add_actuators(self) -> None:
        """Adds all actuators, without the joints that are fixed; an actuator of fixed joints alone is left out."""
        fixed = {joint.name for joint in self.d.joints.values() if joint.kind == "fixed"}
        for element, actuator in self.d.actuators:
            if isinstance(along := actuator["gears"], Transmission):
                moved = along.moved(lambda link: self._on_body(link, Transform.identity())[0], self._place_on_body)
                with element.blamed():
                    self.b.actuator(**{**actuator, "gears": moved})
                continue
            gears = {joint: gear for joint, gear in actuator["gears"].items() if joint not in fixed}
            if gears or not actuator["gears"]:
                with element.blamed():
                    self.b.actuator(**{**actuator, "gears": gears})

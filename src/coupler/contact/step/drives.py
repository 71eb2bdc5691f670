"""Actuators in the program of a step: motors push, servos feel where and how fast the step ends.

A servo's force is clip(F − D u̇⁺) over the step, with the actuator's velocity u̇⁺ after it. F has the target, and D the
gains: dampers feel u̇⁺, and springs the position that joint springs feel (see damping.py). So no gain is too large.

A servo without limits at one joint is a spring and a damper of that joint, with a force beside them (servos.py). So is
one with limits while it keeps within them: steps are tried as if it did (`ContactScene.yielding`). Any other is a row
of the contact problem: dry friction against a target velocity, that gives way. With λ = h (f − f₀) for the middle f₀ of
its limits, |λ| ≤ h (upper − lower)/2, its law u̇⁺ − (F − f₀)/D + λ/(h D) = 0 between the bounds is that of dry friction
with a mobility 1/(h D) more, which the row has by itself (see `Start.soft`). Whether it is saturated is thus decided
with contacts, limits and all other servos, for the end of the step. Velocities without impulses have about
the force in them that the servo will have; what that is beside f₀ is an offset of the row.

Beyond its speed limit an actuator may brake, but not drive: a force f > 0 lies anywhere between 0 and f where u̇⁺ is the
limit. That, too, is dry friction, around the speed limit and half the force. Such a row takes part near the limit.

In steps of several stages, which are explicit, servos are no rows: each stage has the forces of its own state, and what
is told of them is their mean over the step. Speed limits are rows there, too: what the first stage takes off a force is
taken off in all of them, as far as they drive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coupler.algorithms.control_forces import controlling, moving
from coupler.compiled import remembered
from coupler.contact.kernels import clear, copy
from coupler.contact.scene import ContactScene
from coupler.contact.servos import at_joint, servo_damping, servo_groups
from coupler.contact.step import drive_kernels as kernels
from coupler.contact.step.blocks import Blocks
from coupler.contact.step.columns import Columns, Start
from coupler.contact.step.drive_rows import DriveRow, damping_of, drive_rows, effort_limits, mobilities_of
from coupler.contact.step.shared_servos import SharedServos, check_shared_limits, stand_ins
from coupler.graph import Buffer, Part, Vector, Window, constants, fields
from coupler.model import Robot
from coupler.model.actuator_limits import shared_limits
from coupler.model.actuators import Actuator, terms_of
from coupler.passes import Sweep, share_limits, visit_actuators, visit_terms

_ENDLESS = 1e12  # N m or N: stands for no limit of effort, so that all numbers stay finite
_FAR = 1e10  # rad/s or m/s: stands for a speed limit that there is not


def controls_of(robot: Robot) -> int:
    """How many numbers control a robot in a step: one for each actuator, then the rates of targets if servos need."""
    return len(robot.actuators) * (2 if any(actuator.kind == "position" for actuator in robot.actuators) else 1)


class Drives:
    """The actuators of a program.

    Attributes:
        rows: those in the contact problem, servos and speed limits.
        starts: where the columns of these rows start.
    """

    def __init__(self, sweep: Sweep[Any, Any], robot: Robot, scene: ContactScene, controls: Buffer) -> None:
        """Args: a program, the robot as it is described, what the step takes into account, and the controls."""
        self._sweep, self._robot, self._h = sweep, robot, scene.step
        self._yielding, self._explicit = scene.yielding, not scene.implicit
        self._controls, self._ahead = controls, 0.25 * scene.step if scene.integrator == "midpoint" else 0.0
        groups = servo_groups(robot) if scene.implicit else []
        self._checked, groups = ([], groups) if scene.yielding else (groups, [])
        self._actuators = [*robot.actuators, *stand_ins(robot, groups)]
        self._damping = [servo_damping(actuator, scene) for actuator in robot.actuators]
        self._damping += [damping_of(group, self._damping) for group in groups]
        self._spared = {number for group in groups for number in group.members}
        self.rows = drive_rows(robot, scene, self._actuators, self._damping, self._spared)
        self.starts = [self._start(row) for row in self.rows]
        n, names = len(self._actuators), ("position", "start", "speed", "bias", "aim", "loss", "push", "given", "held")
        self._shared = [own for own in shared_limits(robot, robot.actuators) if self._explicit or not own.servos]
        self._limited = sweep.builder.scratch("drive_controls", controls.size) if self._shared else controls
        self._own = {name: sweep.builder.scratch(f"drive_{name}", n) for name in names}
        self._edge = sweep.builder.scratch("drive_edge", 2 * n)  # a speed that is not passed, and the force that ends
        self._offsets = sweep.builder.scratch("drive_offsets", len(self.rows)) if self.rows else None
        self._place = {(row.actuator, row.servo): i for i, row in enumerate(self.rows)}
        self._groups = SharedServos(sweep.builder, groups, self._own, len(robot.actuators))
        self._group_of = {len(robot.actuators) + k: group for k, group in enumerate(groups)}

    def _start(self, row: DriveRow) -> Start:
        terms = terms_of(self._robot, self._actuators[row.actuator])
        return Start(1, geared=tuple((link, j, row.scale * gear) for link, j, gear in terms), soft=row.servo)

    # Before velocities are known

    def prepare(self) -> None:
        """Writes the steps to what actuators push with, and adds it to the forces at joints."""
        if self._explicit:
            self._control(lambda cluster: cluster.memory.start, "start")
            if limited := [row.actuator for row in self.rows]:
                self._sweep.builder.loop(kernels.halve_at_edge, own=self._known(limited))
        else:
            own, builder = self._own, self._sweep.builder
            for name in ("position", "start"):
                clear(builder, own[name])
            visit_terms(self._sweep, kernels.look, {name: own[name] for name in ("position", "start")})
            self._limit_motors()
            for kind, alike in self._kinds().items():
                builder.loop(kernels.deciding(*kind), own=self._known(alike))
            self._groups.gather(self._known)
        self._push()

    def _limit_motors(self) -> None:
        """Writes the steps that limit controls of motors, one by one, and where several share a limit, together."""
        motors = [i for i, actuator in enumerate(self._robot.actuators) if actuator.kind == "motor"]
        if self._limited is not self._controls:
            copy(self._sweep.builder, self._controls, self._limited, self._controls.size)
            self._sweep.builder.loop(kernels.limit_motor, own=self._known(motors))
            share_limits(self._sweep, self._shared, self._limited)

    def _push(self) -> None:
        """Writes the steps that add what actuators push with to the forces at joints."""
        visit_terms(self._sweep, kernels.push, {"force": self._own["push"]})

    # In steps of several stages

    def _control(self, velocity: Callable[[Any], Any], speed: str = "speed") -> None:
        """Writes the steps to what actuators push with where clusters are, and with the velocities that they have."""
        own, count = self._own, len(self._robot.actuators)
        sums = {"position": own["position"], "speed": own[speed]}
        for vector in sums.values():
            clear(self._sweep.builder, vector)
        visit_terms(self._sweep, moving(velocity), sums)
        rates = self._controls.size > count  # of targets, which position servos alone have
        slots: dict[str, Vector] = {**sums, "force": own["push"], "control": self._controls}
        if rates:
            slots["rate"] = Part(self._controls, count, count)
        visit_actuators(self._sweep, controlling(at_any_speed=True), slots)
        share_limits(self._sweep, self._shared, own["push"])

    def drive_stage(self, progress: Callable[[int], Window], forces: Vector, work: Vector) -> None:
        """Writes the steps of actuators in a stage, and adds what they do there to forces and work; see `tell`.

        Args:
            progress: gives so many rows of how far the step is, with the `weight` of the stage.
            forces, work: of each actuator.
        """
        self._control(lambda cluster: cluster.memory.v)
        if limited := [row.actuator for row in self.rows]:
            self._sweep.builder.loop(kernels.hold_back, own=self._known(limited))
        self._push()
        self._sweep.builder.loop(kernels.add_stage, own=self._told(forces, work) | progress(len(self._robot.actuators)))

    def begin_telling(self, weight: float, impulses: Vector | None, first: int, forces: Vector, work: Vector) -> None:
        """Writes the steps to the part of the first stage in forces and work, and to what speed limits take off.

        Args:
            weight: of the first stage.
            impulses, first: of the contact problem, and where those of these rows are; None if there is none.
            forces, work: of each actuator.
        """
        if self.rows and impulses is not None:
            every = range(len(self.rows))
            window = self._known([row.actuator for row in self.rows]) | self._scales(every)
            window |= fields(impulse=impulses.at([first + i for i in every]))
            self._sweep.builder.loop(kernels.find_held, own=window)
        known = constants(np.full(len(self._robot.actuators), weight))
        window = self._told(forces, work, speed="start") | fields(weight=known)
        self._sweep.builder.loop(kernels.begin_stages, own=window)

    def _told(self, forces: Vector, work: Vector, speed: str = "speed") -> Window:
        every = range(len(self._robot.actuators))
        slots = {"force": forces, "work": work, "push": self._own["push"], "speed": self._own[speed]}
        told = fields(**{name: vector.at(every) for name, vector in slots.items()})
        return told | fields(step=constants(np.full(len(every), self._h)))

    def _kinds(self) -> dict[tuple[str, bool, bool], list[int]]:
        """Actuators, those together that follow the same law: the kind, whether at a joint, and limited in speed."""
        kinds: dict[tuple[str, bool, bool], list[int]] = {}
        for number, actuator in enumerate(self._robot.actuators):
            limited = (number, False) in self._place
            kinds.setdefault((actuator.kind, self._at_joint(actuator), limited), []).append(number)
        return kinds

    def _known(self, numbers: Sequence[int]) -> Window:
        actuators = [self._actuators[number] for number in numbers]
        places = [2 * number for number in numbers]
        known = {name: buffer.at(numbers) for name, buffer in self._own.items()} | {"edge": self._edge.at(places, 2)}
        if max(numbers) < len(self._robot.actuators):
            known["control"] = self._limited.at(numbers)
        if actuators[0].kind == "position":
            known["rate"] = self._limited.at([len(self._robot.actuators) + number for number in numbers])
        endless = (-_ENDLESS, _ENDLESS)  # as what a servo is assumed to have that is a spring and a damper
        limits = np.array([endless if self._at_joint(actuator) else effort_limits(actuator) for actuator in actuators])
        table = {
            "least": np.clip([actuator.control[0] for actuator in actuators], -_ENDLESS, _ENDLESS),
            "most": np.clip([actuator.control[1] for actuator in actuators], -_ENDLESS, _ENDLESS),
            "lower": limits[:, 0],
            "upper": limits[:, 1],
            "stiffness": [actuator.stiffness for actuator in actuators],
            "gain": [actuator.damping for actuator in actuators],
            "damping": [self._damping[number] for number in numbers],
            "ahead": np.full(len(numbers), self._ahead),
            "rest": [self._rest(actuator) for actuator in actuators],
            "kick": [self._kick(number) for number in numbers],
            "fastest": np.clip([actuator.speed for actuator in actuators], 0.0, _FAR),
            "step": np.full(len(numbers), self._h),
        }
        return fields(**known, **{name: constants(np.array(values)) for name, values in table.items()})

    def _kick(self, number: int) -> float:
        """By how much an actuator becomes faster within a step by unit of its force, about as much as that is."""
        if not {(number, False), (number, True)} & self._place.keys():
            return 0.0
        mobilities, group = remembered(self._robot, mobilities_of, mobilities_of), self._group_of.get(number)
        return self._h * float(
            mobilities[number] if group is None else mobilities[group.members[0]] / group.gears[0][0] ** 2
        )

    def _rest(self, actuator: Actuator) -> float:
        """The position of an actuator where the springs of its joint are at ease, if it is one of them."""
        if not self._at_joint(actuator):
            return 0.0
        ((link, j, gear),) = terms_of(self._robot, actuator)
        return gear * float(self._robot.tree.links[link].kind.rest[j])

    def _at_joint(self, actuator: Actuator) -> bool:
        return at_joint(self._robot, actuator, yielding=self._yielding)

    # In the contact problem

    def measure(self, blocks: Blocks, columns: Columns, bounds: Buffer, friction: Sequence[float]) -> None:
        """Writes the steps to what is known of rows, from velocities after the step without impulses.

        Args:
            blocks, columns: the problem, whose last blocks are these rows.
            bounds: the largest impulse of each joint and each row.
            friction: of joints, which come first.
        """
        builder, first = self._sweep.builder, blocks.contacts + len(friction)
        blocks.offsets = offsets = self._offsets
        assert offsets is not None
        if friction:
            row = fields(bound=bounds.at(range(len(friction))), known=constants(np.array(friction)))
            builder.loop(kernels.bound, row=row)
        clear(builder, self._own["speed"])
        visit_terms(self._sweep, kernels.speeding("u"), {"speed": self._own["speed"]})
        if self._explicit:
            visit_terms(self._sweep, kernels.speeding_ahead, {"speed": self._own["speed"]})
        self._groups.look()
        for servo, stands_in in ((True, False), (True, True), (False, False)):
            own = self._rows_of(servo, stands_in)
            if own:
                numbers = [first + i for i in own]
                window = self._known([self.rows[i].actuator for i in own]) | blocks.of(numbers) | self._scales(own)
                window |= fields(offset=offsets.at(own, 1))
                if servo:
                    soft = columns.soft_nodes(numbers).fields
                    window |= fields(z=soft["z"], y=soft["y"])
                builder.loop(kernels.begin_servo if servo else kernels.begin_limit, own=window)

    def _rows_of(self, servo: bool, stands_in: bool) -> list[int]:
        """The numbers of rows of servos, or of speed limits; of actuators, or of those that stand for several."""
        count = len(self._robot.actuators)
        return [i for i, row in enumerate(self.rows) if row.servo is servo and (row.actuator >= count) is stands_in]

    def _scales(self, rows: Sequence[int]) -> Window:
        return fields(scale=constants(np.array([self.rows[i].scale for i in rows])))

    # Afterwards

    def tell(self, blocks: Blocks | None, joints: int, forces: Vector, work: Vector) -> None:
        """Writes the steps to the forces of all actuators in the step, and to the work that they do.

        Args:
            blocks: the problem; None if there is none.
            joints: how many joints come before these rows in it.
            forces, work: of each actuator, N m or N, and J.
        """
        builder, own = self._sweep.builder, self._own
        for name in ("speed", "bias"):
            clear(builder, own[name])
        visit_terms(self._sweep, kernels.speeding("v_next"), {"speed": own["speed"]})
        if not all(shape.linear for shape, _ in self._sweep.shapes):
            visit_terms(self._sweep, kernels.speeding_up, {"speed": own["bias"]})
        for kind, alike in self._kinds().items():
            builder.loop(kernels.telling(kind[1]), own=self._known(alike) | fields(force=forces.at(alike)))
        self._groups.begin()
        for servo, stands_in in ((True, False), (True, True), (False, False)):
            rows = self._rows_of(servo, stands_in)
            if rows and blocks is not None:
                window = blocks.of([blocks.contacts + joints + i for i in rows]) | self._scales(rows)
                told, first = (self._groups.totals, len(self._robot.actuators)) if stands_in else (forces, 0)
                assert told is not None
                window |= fields(force=told.at([self.rows[i].actuator - first for i in rows]))
                builder.loop(kernels.add_row, own=window | fields(step=constants(np.full(len(rows), self._h))))
        self._groups.share(forces)
        every = range(len(self._robot.actuators))
        window = {"force": forces, "work": work, "start": own["start"], "speed": own["speed"]}
        step = constants(np.full(len(every), self._h))
        builder.loop(kernels.work, own=fields(step=step, **{name: buffer.at(every) for name, buffer in window.items()}))

    def check_limits(self, forces: Vector, residual: Vector) -> None:
        """Writes the steps that make the residual NaN where a servo that was assumed not to give way ought to."""
        actuators = self._robot.actuators
        own = [i for i, x in enumerate(actuators) if np.isfinite(x.effort).any() and self._at_joint(x)]
        if own:
            limits = np.array([effort_limits(actuators[i]) for i in own])
            window = fields(force=forces.at(own), residual=residual.at([0] * len(own)))
            window |= fields(lower=constants(limits[:, 0]), upper=constants(limits[:, 1]))
            self._sweep.builder.loop(kernels.check_limits, own=window)
        check_shared_limits(self._sweep.builder, self._checked, forces, residual)

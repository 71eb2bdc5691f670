"""Actuators in the program of a step: motors push, servos feel where and how fast the step ends.

The force of a servo over a step is clip(F − D u̇⁺), with the actuator's velocity u̇⁺ after the step. F contains the
target and the velocity before the step, D the gains: dampers and springs feel what those of joints feel (see
damping.py). So no gain is too large for a step.

A servo without limits at one joint is a spring and a damper of that joint, with a force beside them (servos.py). So is
a servo with limits while it keeps within them, which steps first assume (`ContactScene.yielding`). Any other servo is a
row of the contact problem: dry friction against a target velocity, which yields. Let f₀ be the middle of its limits and
λ = h (f − f₀), so that |λ| ≤ h (upper − lower)/2. Between the bounds, its law u̇⁺ − (F − f₀)/D + λ/(h D) = 0 is that of
dry friction with an additional mobility 1/(h D), which the row has for itself (see `Start.soft`). So whether the servo
saturates is decided together with contacts, limits and all other servos, for the end of the step. Velocities without
impulses already contain about the force that the servo will have; its difference from f₀ is an offset of the row.

Beyond its speed limit an actuator may brake, but not drive: where u̇⁺ is the limit, a force f > 0 may be cut to
anything between 0 and f. That, too, is dry friction, around the speed limit and half the force. Such a row takes part
near the limit.

Steps of several stages are explicit, and servos are not rows there: each stage takes forces at its own state, and their
mean over the step is reported. Speed limits are rows all the same: what the first stage takes off a force is taken off
in all stages, as far as they drive.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coupler.algorithms.control_forces import controlling, moving
from coupler.contact.kernels import clear, copy
from coupler.contact.scene import ContactScene
from coupler.contact.servos import servo_groups
from coupler.contact.step import drive_kernels as kernels
from coupler.contact.step.blocks import Blocks
from coupler.contact.step.columns import Columns, Start
from coupler.contact.step.drive_rows import DriveRow, effort_limits
from coupler.contact.step.drive_table import DriveTable
from coupler.contact.step.shared_servos import SharedServos, check_shared_limits
from coupler.graph import Buffer, Part, Vector, Window, constants, fields
from coupler.grouping import grouped
from coupler.model import Robot
from coupler.model.actuator_limits import shared_limits
from coupler.model.actuators import terms_of
from coupler.passes import Sweep, add_positions, measure_gears, share_limits, visit_actuators, visit_terms

_SUMS = ("position", "start", "speed", "bias")  # of actuators, over the joints that each acts on
_FORCES = ("aim", "loss", "push", "given", "held")  # F, D, and forces; see drive_kernels.py


def controls_of(robot: Robot) -> int:
    """The number of controls of a robot in a step: one per actuator, and with position servos also a rate for each."""
    return len(robot.actuators) * (2 if any(actuator.kind == "position" for actuator in robot.actuators) else 1)


class Drives:
    """The actuators of a robot in a step.

    Args:
        robot: the robot as it is described, before servos became springs and dampers of joints.
        controls: the input of controls; see `controls_of`.

    Attributes:
        rows: their rows of the contact problem: servos and speed limits.
        starts: the starts of these rows' columns.
    """

    def __init__(self, sweep: Sweep[Any, Any], robot: Robot, scene: ContactScene, controls: Buffer) -> None:
        self._sweep, self._robot, self._h, self._controls = sweep, robot, scene.step, controls
        self._explicit, builder = not scene.implicit, sweep.builder
        groups = servo_groups(robot) if scene.implicit else []
        # Servos that share a limit are one servo in the problem, or are checked afterwards if none is assumed to yield.
        self._checked, groups = ([], groups) if scene.yielding else (groups, [])
        self._table = DriveTable(robot, scene, groups)
        self.rows = self._table.rows
        self.starts = [self._start(row) for row in self.rows]
        n = len(self._table.actuators)
        self._shared = [limit for limit in shared_limits(robot, robot.actuators) if self._explicit or not limit.servos]
        self._limited = builder.scratch("drive_controls", controls.size) if self._shared else controls
        self._buffers = {name: builder.scratch(f"drive_{name}", n) for name in (*_SUMS, *_FORCES)}
        self._edge = builder.scratch("drive_edge", 2 * n)  # the speed limit ahead, and half the force that ends there
        self._offsets = builder.scratch("drive_offsets", len(self.rows)) if self.rows else None
        self._groups = SharedServos(builder, groups, self._buffers, len(robot.actuators))

    def _start(self, row: DriveRow) -> Start:
        actuator = self._table.actuators[row.actuator]
        geared = tuple((link, j, row.scale * gear) for link, j, gear in terms_of(self._robot, actuator))
        measured = None if actuator.along is None else (row.actuator, row.scale)
        return Start(1, geared=geared, measured=measured, soft=row.servo)

    @property
    def forces(self) -> Vector:
        """The forces of motors within their limits, in steps of a single stage."""
        return self._buffers["given"]

    # Before velocities are known

    def prepare(self) -> None:
        """Writes the steps that compute forces of actuators, and add them to the forces at joints."""
        if self._explicit:
            self._control(lambda cluster: cluster.memory.start, "start")
            if limited := [row.actuator for row in self.rows]:
                self._sweep.builder.loop(kernels.halve_at_edge, drive=self._window(limited))
        else:
            builder, sums = self._sweep.builder, {name: self._buffers[name] for name in ("position", "start")}
            for vector in sums.values():
                clear(builder, vector)
            measure_gears(self._sweep)
            visit_terms(self._sweep, kernels.look, sums)
            add_positions(self._sweep, sums["position"])
            self._limit_motors()
            for kind, numbers in self._kinds().items():
                builder.loop(kernels.deciding(*kind), drive=self._window(numbers))
            self._groups.gather(self._window)
        self._push()

    def _limit_motors(self) -> None:
        """Writes the steps that limit controls of motors, one by one, and together where several share a limit."""
        motors = [i for i, actuator in enumerate(self._robot.actuators) if actuator.kind == "motor"]
        if self._limited is not self._controls:
            copy(self._sweep.builder, self._controls, self._limited, self._controls.size)
            self._sweep.builder.loop(kernels.limit_motor, drive=self._window(motors))
            share_limits(self._sweep, self._shared, self._limited)

    def _push(self) -> None:
        """Writes the steps that add forces of actuators to the forces at joints."""
        visit_terms(self._sweep, kernels.push, {"force": self._buffers["push"]})

    # In steps of several stages

    def _control(self, velocity: Callable[[Any], Any], speed: str = "speed") -> None:
        """Writes the steps that compute forces of actuators at the positions of clusters, and at the velocities given.

        Args:
            velocity: gives the velocity of a cluster, along its basis.
            speed: the buffer that gets the velocities of actuators.
        """
        count, forces = len(self._robot.actuators), self._buffers["push"]
        sums = {"position": self._buffers["position"], "speed": self._buffers[speed]}
        for vector in sums.values():
            clear(self._sweep.builder, vector)
        measure_gears(self._sweep)
        visit_terms(self._sweep, moving(velocity), sums)
        add_positions(self._sweep, sums["position"])
        slots: dict[str, Vector] = {**sums, "force": forces, "control": self._controls}
        if self._controls.size > count:  # rates of targets, which position servos alone have
            slots["rate"] = Part(self._controls, count, count)
        visit_actuators(self._sweep, controlling(at_any_speed=True), slots)
        share_limits(self._sweep, self._shared, forces)

    def drive_stage(self, progress: Callable[[int], Window], forces: Vector, work: Vector) -> None:
        """Writes the steps that compute actuators' forces in a stage, and add its part to their mean force and work.

        Args:
            progress: gives windows of so many rows with the `weight` of the stage.
            forces, work: of each actuator; see `report`.
        """
        self._control(lambda cluster: cluster.memory.v)
        if limited := [row.actuator for row in self.rows]:
            self._sweep.builder.loop(kernels.hold_back, drive=self._window(limited))
        self._push()
        window = self._reported(forces, work) | progress(len(self._robot.actuators))
        self._sweep.builder.loop(kernels.add_stage, drive=window)

    def report_first_stage(
        self, weight: float, impulses: Vector | None, first: int, forces: Vector, work: Vector
    ) -> None:
        """Writes the steps that compute the first stage's part of forces and work, and what speed limits take off.

        Args:
            weight: the weight of the first stage.
            impulses: the impulses of the contact problem; None if there is no problem.
            first: the index of the first impulse of actuators' rows there.
            forces, work: the force and the work of each actuator; see `report`.
        """
        if self.rows and impulses is not None:
            rows = range(len(self.rows))
            window = self._window([row.actuator for row in self.rows]) | self._scales(rows)
            window |= fields(impulse=impulses.at([first + i for i in rows]))
            self._sweep.builder.loop(kernels.find_held, drive=window)
        weights = constants(np.full(len(self._robot.actuators), weight))
        window = self._reported(forces, work, speed="start") | fields(weight=weights)
        self._sweep.builder.loop(kernels.begin_stages, drive=window)

    def _reported(self, forces: Vector, work: Vector, speed: str = "speed") -> Window:
        """The fields for kernels that add up forces and work of all actuators."""
        every = range(len(self._robot.actuators))
        slots = {"force": forces, "work": work, "push": self._buffers["push"], "speed": self._buffers[speed]}
        window = fields(**{name: vector.at(every) for name, vector in slots.items()})
        return window | fields(step=constants(np.full(len(every), self._h)))

    def _kinds(self) -> dict[tuple[str, bool, bool], list[int]]:
        """Actuators by law: the kind, whether it is at a joint (see `at_joint`), and whether its speed is limited."""
        table = self._table
        limited = {row.actuator for row in self.rows if not row.servo}

        def law(number: int) -> tuple[str, bool, bool]:
            actuator = table.actuators[number]
            return actuator.kind, table.is_at_joint(actuator), number in limited

        return grouped(range(len(self._robot.actuators)), law)

    def _window(self, numbers: Sequence[int]) -> Window:
        """The fields that kernels see of some actuators, all of one kind."""
        slots = {name: buffer.at(numbers) for name, buffer in self._buffers.items()}
        slots["edge"] = self._edge.at([2 * number for number in numbers], 2)
        count = len(self._robot.actuators)
        if max(numbers) < count:
            slots["control"] = self._limited.at(numbers)
        if self._table.actuators[numbers[0]].kind == "position":
            slots["rate"] = self._limited.at([count + number for number in numbers])
        return fields(**slots) | self._table.window(numbers)

    # In the contact problem

    def measure(self, blocks: Blocks, columns: Columns, bounds: Buffer, friction: Sequence[float]) -> None:
        """Writes the steps that compute the rows of actuators, from velocities after the step without impulses.

        Args:
            blocks, columns: the contact problem, whose last blocks are these rows.
            bounds: gets the largest impulse of each joint and each row.
            friction: the largest impulses of joints, which come first.
        """
        builder, first = self._sweep.builder, blocks.contacts + len(friction)
        blocks.offsets = offsets = self._offsets
        assert offsets is not None
        if friction:
            row = fields(bound=bounds.at(range(len(friction))), friction=constants(np.array(friction)))
            builder.loop(kernels.bound_joint, row=row)
        clear(builder, self._buffers["speed"])
        visit_terms(self._sweep, kernels.speeding("u"), {"speed": self._buffers["speed"]})
        if self._explicit:
            visit_terms(self._sweep, kernels.speeding_ahead, {"speed": self._buffers["speed"]})
        self._groups.look()
        for servo, stands_in in ((True, False), (True, True), (False, False)):
            rows = self._rows_of(servo, stands_in)
            if rows:
                numbers = [first + i for i in rows]
                window = self._window([self.rows[i].actuator for i in rows]) | blocks.of(numbers) | self._scales(rows)
                window |= fields(offset=offsets.at(rows, 1))
                if servo:
                    soft = columns.soft_nodes(numbers).fields
                    window |= fields(z=soft["z"], y=soft["y"])
                builder.loop(kernels.begin_servo if servo else kernels.begin_limit, drive=window)

    def _rows_of(self, servo: bool, stands_in: bool) -> list[int]:
        """The numbers of rows of servos, or of speed limits; of actuators, or of stand-ins (see `SharedServos`)."""
        count = len(self._robot.actuators)
        return [i for i, row in enumerate(self.rows) if row.servo is servo and (row.actuator >= count) is stands_in]

    def _scales(self, rows: Sequence[int]) -> Window:
        return fields(scale=constants(np.array([self.rows[i].scale for i in rows])))

    # Afterwards

    def report(self, blocks: Blocks | None, joints: int, forces: Vector, work: Vector) -> None:
        """Writes the steps that compute the forces of all actuators in the step, and the work that they do.

        Args:
            blocks: the contact problem; None if there is none.
            joints: the number of joints before the rows of actuators there.
            forces: gets the force of each actuator, N m or N.
            work: gets the work of each actuator, J.
        """
        builder, speeds = self._sweep.builder, self._buffers["speed"]
        for name in ("speed", "bias"):
            clear(builder, self._buffers[name])
        visit_terms(self._sweep, kernels.speeding("v_next"), {"speed": speeds})
        if not all(shape.linear for shape, _ in self._sweep.shapes):
            visit_terms(self._sweep, kernels.speeding_up, {"speed": self._buffers["bias"]})
        for (_, at_joint, _), numbers in self._kinds().items():
            window = self._window(numbers) | fields(force=forces.at(numbers))
            builder.loop(kernels.reporting(at_joint), drive=window)
        self._groups.begin()
        for servo, stands_in in ((True, False), (True, True), (False, False)):
            rows = self._rows_of(servo, stands_in)
            if rows and blocks is not None:
                window = blocks.of([blocks.contacts + joints + i for i in rows]) | self._scales(rows)
                target, first = (self._groups.totals, len(self._robot.actuators)) if stands_in else (forces, 0)
                assert target is not None
                window |= fields(force=target.at([self.rows[i].actuator - first for i in rows]))
                builder.loop(kernels.add_row, drive=window | fields(step=constants(np.full(len(rows), self._h))))
        self._groups.share(forces)
        every = range(len(self._robot.actuators))
        window = fields(start=self._buffers["start"].at(every)) | self._reported(forces, work)
        builder.loop(kernels.work, drive=window)

    def check_limits(self, forces: Vector, residual: Vector) -> None:
        """Writes the steps that set the residual to NaN where a servo that was assumed not to yield would have to."""
        actuators, at_joint = self._robot.actuators, self._table.is_at_joint
        servos = [i for i, x in enumerate(actuators) if np.isfinite(x.effort).any() and at_joint(x)]
        if servos:
            limits = np.array([effort_limits(actuators[i]) for i in servos])
            window = fields(force=forces.at(servos), residual=residual.at([0] * len(servos)))
            window |= fields(lower=constants(limits[:, 0]), upper=constants(limits[:, 1]))
            self._sweep.builder.loop(kernels.check_limits, drive=window)
        check_shared_limits(self._sweep.builder, self._checked, forces, residual)

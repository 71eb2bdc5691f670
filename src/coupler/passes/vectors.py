"""The vectors of a program over a robot: its inputs, its outputs, and scratch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from coupler.graph import Buffer, Builder, Program, Vector, View, constants, fields
from coupler.model import Robot
from coupler.passes.schedule import Store


class ProgramVectors:
    """Makes the vectors of a program.

    Attributes:
        robot: the robot.
        builder: the builder of the program.
        vectors: by name, q and the vectors over independent velocities; each cluster sees its part of them.
        totals: by name, the vectors that all clusters see as a whole.
        results: the outputs.
    """

    def __init__(self, robot: Robot, name: str) -> None:
        """Args: the robot, and the name of the program."""
        self.robot = robot
        self.builder = Builder(name, robot.tree.parameters, traced=robot.backend != "python")
        self.vectors: dict[str, Vector] = {}
        self.totals: dict[str, Buffer] = {}
        self.results: list[Buffer] = []

    def inputs(self, *names: str) -> list[Buffer]:
        """Inputs of the program: q has nq entries, all others are over independent velocities and have nv."""
        return [self.input(name, self.robot.nq if name == "q" else self.robot.nv) for name in names]

    def input(self, name: str, size: int) -> Buffer:
        """An input of any size."""
        self.vectors[name] = buffer = self.builder.input(name, size)
        return buffer

    def output(self, name: str) -> Buffer:
        """An output of the program, over independent velocities."""
        self.vectors[name] = buffer = self.result(name, self.robot.nv)
        return buffer

    def vector(self, name: str) -> Buffer:
        """Scratch over independent velocities."""
        self.vectors[name] = buffer = self.builder.scratch(name, self.robot.nv)
        return buffer

    def result(self, name: str, size: int) -> Buffer:
        """An output of any size, which clusters do not see."""
        self.results.append(self.builder.output(name, size))
        return self.results[-1]

    def total(self, name: str, size: int) -> Buffer:
        """A vector of zeros that all clusters see in their memory, to add to."""
        self.totals[name] = self.builder.scratch(name, size)
        self.clear(self.totals[name], size)
        return self.totals[name]

    def clear(self, buffer: Buffer, shape: int | tuple[int, ...]) -> None:
        """Sets a buffer of that shape to zero."""
        self.builder.loop(_clear, total=fields(x=buffer.at(0, shape)))

    def finish(self, name: str, size: int, function: Callable[..., Any], total: Buffer, *numbers: Any) -> None:
        """Adds an output that is a function of a total and of numbers of the robot, which may depend on parameters."""

        def kernel(entries: View) -> None:
            entries.y = function(entries.x, *(getattr(entries, field) for field in given))

        given = {f"number{i}": constants([value]) for i, value in enumerate(numbers)}
        output = self.result(name, size)
        self.builder.loop(kernel, entries=fields(x=total.at(0, total.size), y=output.at(0, size), **given))

    def store(self, name: str) -> Store:
        """Scratch for matrices by key."""
        return Store(lambda size: self.builder.scratch(name, size))

    def result_store(self, name: str) -> Store:
        """An output made of matrices by key."""
        return Store(lambda size: self.result(name, size))

    def scratch(self, name: str, size: int) -> Buffer:
        """A vector for the program's own use."""
        return self.builder.scratch(name, size)

    def call(self, program: Program, **bindings: Buffer) -> None:
        """Runs another program in place, its inputs and outputs bound by name to vectors of this one."""
        self.builder.call(program, **bindings)


def _clear(total: View) -> None:
    total.x = np.zeros(np.shape(total.x))

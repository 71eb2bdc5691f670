"""Scenes with known answers, side by side with MuJoCo: expected and measured numbers.

    python benchmarks/physics.py

MuJoCo runs each scene twice: with its defaults, and with contacts as hard as its step allows (solref of two steps,
solimp next to one, elliptic cones, 200 iterations). Both simulators take the same steps.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from coupler import Robot, RobotBuilder, Simulation
from coupler.model import Box, Free, Plane, Prismatic, Revolute, Sphere, Spherical

G = 9.81
HARD = '<default><geom solref="{:g} 1" solimp="0.999 0.9999 0.0001"/></default>'


@dataclass(frozen=True)
class Case:
    """A scene.

    Attributes:
        name: what happens in the scene.
        unit: the unit of the number that is compared.
        expected: the known number.
        ours: computes the number with coupler.
        theirs: computes it with MuJoCo, for the model with that default; None if it has no such scene.
    """

    name: str
    unit: str
    expected: float
    ours: Callable[[], float]
    theirs: Callable[[str, bool], float] | None = None


def free(b: RobotBuilder, name: str, mass: float, inertia: Any, shape: Any, **options: Any) -> None:
    b.body(name, mass, inertia=inertia)
    b.joint(name, Free(), "ground", name)
    b.shape(name, shape, **options)


def place(robot: Robot, **positions: Any) -> np.ndarray:
    return robot.pack_q({name: [*at, 1.0, 0.0, 0.0, 0.0] for name, at in positions.items()})


def mujoco_model(
    body: str, default: str, hard: bool, step: float, gravity: bool = True, integrator: str = "Euler"
) -> Any:
    mujoco: Any = import_module("mujoco")
    options = 'cone="elliptic" iterations="200" tolerance="1e-14"' if hard else ""
    fall = "0 0 -9.81" if gravity else "0 0 0"
    option = f'<option timestep="{step}" gravity="{fall}" integrator="{integrator}" {options}/>'
    text = f'<mujoco><compiler angle="radian"/>{option}{default}<worldbody>{body}</worldbody></mujoco>'
    model = mujoco.MjModel.from_xml_string(text)
    return model, mujoco.MjData(model)


def mujoco_run(model: Any, data: Any, duration: float) -> Any:
    mujoco: Any = import_module("mujoco")
    for _ in range(round(duration / model.opt.timestep)):
        mujoco.mj_step(model, data)
    return data


# Heavy on light


def tower(ratio: float) -> Case:
    def ours() -> float:
        b = RobotBuilder("tower")
        b.shape("ground", Plane())
        for name, mass in (("low", 1.0), ("high", ratio)):
            free(b, name, mass, (0.004 * mass,) * 3, Sphere(0.1))
        robot = b.build()
        simulation = Simulation(robot, q=place(robot, low=(0, 0, 0.1), high=(0, 0, 0.3)))
        simulation.run(1.0)
        return 1e3 * (simulation.q[robot.q_slice("high")][2] - 0.3)

    def theirs(default: str, hard: bool) -> float:
        bodies = [
            f'<body pos="0 0 {z}"><freejoint/><geom size="0.1" mass="{m}"/></body>'
            for z, m in ((0.1, 1.0), (0.3, ratio))
        ]
        model, data = mujoco_model('<geom type="plane" size="5 5 1"/>' + "".join(bodies), default, hard, 1e-3)
        return 1e3 * (mujoco_run(model, data, 1.0).qpos[9] - 0.3)

    return Case(f"ball of {ratio:g} kg on one of 1 kg, moved after 1 s", "mm", 0.0, ours, theirs)


def stack(count: int) -> Case:
    def ours() -> float:
        b = RobotBuilder("stack")
        b.shape("ground", Plane(), friction=0.5)
        for i in range(count):
            free(b, f"box{i}", 1.0, (0.04 / 6,) * 3, Box((0.2, 0.2, 0.2)))
        robot = b.build()
        q = place(robot, **{f"box{i}": (0, 0, 0.1 + 0.2 * i) for i in range(count)})
        simulation = Simulation(robot, q=q)
        simulation.run(1.0)
        return 1e3 * float(np.abs(simulation.q - q).max())

    def theirs(default: str, hard: bool) -> float:
        bodies = "".join(
            f'<body pos="0 0 {0.1 + 0.2 * i}"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1"/></body>'
            for i in range(count)
        )
        model, data = mujoco_model('<geom type="plane" size="5 5 1"/>' + bodies, default, hard, 1e-3)
        start = data.qpos.copy()
        return 1e3 * float(np.abs(mujoco_run(model, data, 1.0).qpos - start).max())

    return Case(f"stack of {count} boxes, moved after 1 s", "mm", 0.0, ours, theirs)


def plate(points: int, friction: float) -> Case:
    turns = 2 * np.pi * np.arange(points) / points

    def ours() -> float:
        b = RobotBuilder("plate")
        b.shape("ground", Plane(), friction=friction)
        b.body("plate", 1.0, inertia=(0.3, 0.3, 0.5))
        b.joint("plate", Free(), "ground", "plate")
        for turn in turns:
            b.shape("plate", Sphere(1e-3), at=(np.cos(turn), np.sin(turn), -0.5))
        robot = b.build()
        v = robot.pack_v({"plate": [0, 0, 0, 1, 0, -1]})
        simulation = Simulation(robot, q=place(robot, plate=(0, 0, 0.501)), v=v)
        simulation.run(0.05)
        return float(simulation.v[3])

    def theirs(default: str, hard: bool) -> float:
        geoms = "".join(
            f'<geom size="0.001" pos="{np.cos(t)} {np.sin(t)} -0.5" mass="0" friction="{friction} 0 0"/>' for t in turns
        )
        inertial = '<inertial pos="0 0 0" mass="1" diaginertia="0.3 0.3 0.5"/>'
        body = f'<body pos="0 0 0.501"><freejoint/>{inertial}{geoms}</body>'
        ground = f'<geom type="plane" size="5 5 1" friction="{friction} 0 0"/>'
        model, data = mujoco_model(ground + body, default, hard, 1e-3)
        data.qvel[:] = [1, 0, -1, 0, 0, 0]
        return float(mujoco_run(model, data, 0.05).qvel[0])

    expected = max(1.0 - friction * (1.0 + 0.05 * G), 0.0)
    return Case(
        f"plate on {points} points lands at 1 m/s and slides, µ = {friction:g}: speed", "m/s", expected, ours, theirs
    )


def sliding() -> Case:
    def ours() -> float:
        b = RobotBuilder("box")
        b.shape("ground", Plane(), friction=0.3)
        free(b, "box", 2.0, (0.02, 0.02, 0.02), Box((0.2, 0.2, 0.1)), friction=0.3)
        robot = b.build()
        simulation = Simulation(robot, q=place(robot, box=(0, 0, 0.05)), v=robot.pack_v({"box": [0, 0, 0, 2, 0, 0]}))
        simulation.run(1.0)
        return float(simulation.q[0])

    def theirs(default: str, hard: bool) -> float:
        body = (
            '<geom type="plane" size="5 5 1" friction="0.3 0 0"/><body pos="0 0 0.05"><freejoint/>'
            '<geom type="box" size="0.1 0.1 0.05" mass="2" friction="0.3 0 0"/></body>'
        )
        model, data = mujoco_model(body, default, hard, 1e-3)
        data.qvel[0] = 2.0
        return float(mujoco_run(model, data, 1.0).qpos[0])

    return Case("box slides from 2 m/s, µ = 0.3: where it stops", "m", 2.0**2 / (2 * 0.3 * G), ours, theirs)


# Ghosts


def passing() -> Case:
    def ours() -> float:
        b = RobotBuilder("ball")
        b.shape("ground", Box((0.2, 0.2, 0.2)), friction=0.5)
        free(b, "ball", 1.0, (0.004,) * 3, Sphere(0.1), friction=0.5)
        robot = b.build().with_gravity((0, 0, 0))
        v = robot.pack_v({"ball": [0, 0, 0, 3, 0, 0]})
        simulation = Simulation(robot, 1e-2, q=place(robot, ball=(-0.5, 0, 0.202)), v=v)
        simulation.run(0.3)
        return float(simulation.v[3])

    def theirs(default: str, hard: bool) -> float:
        body = (
            '<geom type="box" size="0.1 0.1 0.1"/><body pos="-0.5 0 0.202"><freejoint/>'
            '<geom size="0.1" mass="1"/></body>'
        )
        model, data = mujoco_model(body, default, hard, 1e-2, gravity=False)
        data.qvel[0] = 3.0
        return float(mujoco_run(model, data, 0.3).qvel[0])

    return Case("ball passes 2 mm beside a box at 3 m/s, h = 10 ms: speed", "m/s", 3.0, ours, theirs)


def seams() -> Case:
    def ours() -> float:
        b = RobotBuilder("box")
        for i in range(4):
            b.shape("ground", Box((0.5, 1.0, 0.2)), at=(0.5 * i, 0, -0.1), friction=0.0)
        free(b, "box", 1.0, (0.01,) * 3, Box((0.2, 0.2, 0.2)), friction=0.0)
        robot = b.build()
        simulation = Simulation(robot, q=place(robot, box=(0, 0, 0.1)), v=robot.pack_v({"box": [0, 0, 0, 2, 0, 0]}))
        simulation.run(0.6)
        return float(simulation.v[3])

    def theirs(default: str, hard: bool) -> float:
        tiles = "".join(
            f'<geom type="box" size="0.25 0.5 0.1" pos="{0.5 * i} 0 -0.1" friction="0 0 0"/>' for i in range(4)
        )
        body = '<body pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1" mass="1" friction="0 0 0"/></body>'
        model, data = mujoco_model(tiles + body, default, hard, 1e-3)
        data.qvel[0] = 2.0
        return float(mujoco_run(model, data, 0.6).qvel[0])

    return Case("box slides over seams of flush boxes, µ = 0: speed", "m/s", 2.0, ours, theirs)


# Impacts


def rebound() -> Case:
    def ours() -> float:
        b = RobotBuilder("ball")
        b.shape("ground", Plane())
        free(b, "ball", 1.0, (0.004,) * 3, Sphere(0.1))
        robot = b.build()
        simulation = Simulation(robot, q=place(robot, ball=(0, 0, 0.6)), restitution=0.8)
        log = simulation.run(0.75)
        return float(log.q[log.times > 0.33, 2].max() - 0.1)

    return Case("ball falls 0.5 m, e = 0.8: how high it comes back", "m", 0.8**2 * 0.5, ours)


def cradle(gap: float) -> Case:
    def ours() -> float:
        b = RobotBuilder("cradle")
        for i in range(5):
            b.body(f"ball{i}", 1.0, inertia=(0.004,) * 3)
            b.joint(f"ball{i}", Prismatic(axis=(1, 0, 0)), "ground", f"ball{i}")
            b.shape(f"ball{i}", Sphere(0.1))
        robot = b.build()
        q = [i * (0.2 + gap) - (0.1 if i == 0 else 0.0) for i in range(5)]
        simulation = Simulation(robot, q=q, v=[1.0, 0, 0, 0, 0], restitution=1.0)
        simulation.run(0.2)
        return float(simulation.v[4])

    return Case(f"Newton's cradle, gaps of {gap * 1e3:g} mm: speed of the last of five balls", "m/s", 1.0, ours)


# Motion without contact


def energy(robot: Robot, q: Any, v: Any, duration: float) -> float:
    """The largest change of energy, relative to the kinetic energy at the start."""
    log = Simulation(robot, q=q, v=v).run(duration)
    total = log.kinetic + log.potential
    return float(np.abs(total - total[0]).max() / log.kinetic.max())


def mujoco_energy(model: Any, data: Any, duration: float) -> float:
    mujoco: Any = import_module("mujoco")
    model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    total, kinetic = [], []
    for _ in range(round(duration / model.opt.timestep)):
        mujoco.mj_step(model, data)
        total.append(float(data.energy.sum()))
        kinetic.append(float(data.energy[1]))
    return float(np.abs(np.array(total) - total[0]).max() / max(kinetic))


def pendulum() -> Case:
    def ours() -> float:
        b = RobotBuilder("pendulum")
        b.body("link", 1.0, (0, 0, -0.5), (0.02, 0.015, 0.01))
        b.joint("ball", Spherical(), "ground", "link")
        robot = b.build()
        return energy(robot, robot.neutral(), [60.0, 3.0, 80.0], 2.0)

    def theirs(default: str, hard: bool) -> float:
        body = '<body><joint type="ball"/><inertial pos="0 0 -0.5" mass="1" diaginertia="0.02 0.015 0.01"/></body>'
        model, data = mujoco_model(body, default, hard, 1e-3, integrator="RK4" if hard else "Euler")
        data.qvel[:] = [60.0, 3.0, 80.0]
        return mujoco_energy(model, data, 2.0)

    return Case("pendulum that turns at 100 rad/s for 2 s: error of energy", "of it", 0.0, ours, theirs)


def handle() -> Case:
    def ours() -> float:
        b = RobotBuilder("handle")
        b.body("body", 1.0, inertia=(0.3, 0.2, 0.1))
        b.joint("free", Free(), "ground", "body")
        robot = b.build().with_gravity((0, 0, 0))
        return energy(robot, robot.neutral(), [0.01, 10.0, 0.01, 0, 0, 0], 10.0)

    def theirs(default: str, hard: bool) -> float:
        body = '<body><freejoint/><inertial pos="0 0 0" mass="1" diaginertia="0.3 0.2 0.1"/></body>'
        model, data = mujoco_model(body, default, hard, 1e-3, gravity=False, integrator="RK4" if hard else "Euler")
        data.qvel[3:] = [0.01, 10.0, 0.01]
        return mujoco_energy(model, data, 10.0)

    return Case("T-handle that turns over, 10 s: error of energy", "of it", 0.0, ours, theirs)


def crank() -> Case:
    def ours() -> float:
        b = RobotBuilder("crank-rocker")
        for name, length in (("crank", 0.3), ("coupler", 0.8), ("rocker", 0.7)):
            b.body(name, 1.0, (length / 2, 0, 0), (1e-4, length**2 / 12, length**2 / 12))
        axis = (0, 1, 0)
        b.joint("A", Revolute(axis=axis), "ground", "crank")
        b.joint("B", Revolute(axis=axis), "crank", "coupler", at=(0.3, 0, 0))
        b.joint("D", Revolute(axis=axis), "ground", "rocker", at=(0.9, 0, 0), independent=True)
        b.loop("C", Revolute(axis=axis), "coupler", "rocker", at=(0.8, 0, 0), meets=(0.7, 0, 0))
        robot = b.build()
        log = Simulation(robot, q=robot.pack_q({"A": 2.0})).run(3.0)
        total = log.kinetic + log.potential
        return float(np.abs(total - total[0]).max() / log.kinetic.max())

    return Case("crank-rocker through dead points of its rocker, 3 s: error of energy", "of it", 0.0, ours)


CASES = [
    tower(1e3),
    tower(1e6),
    stack(5),
    stack(10),
    plate(12, 0.4),
    plate(64, 1.5),
    sliding(),
    passing(),
    seams(),
    rebound(),
    cradle(0.0),
    cradle(9e-4),
    pendulum(),
    handle(),
    crank(),
]


def shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.1e}" if value and abs(value) < 1e-3 else f"{value:.4g}"


def tried(function: Callable[[], float]) -> float | None:
    try:
        return function()
    except Exception as error:  # a simulator that cannot go on is a result, too
        print(f"    {error}")
        return float("nan")


def main() -> None:
    """Prints the table."""
    peer = find_spec("mujoco") is not None
    if not peer:
        print("there is no MuJoCo to compare with: pip install 'mujoco>=4'")
    warnings.simplefilter("ignore")
    print(
        "| case | | expected | coupler | MuJoCo | MuJoCo, stiffened |\n| --- | --- | --- | --- | --- | --- |",
        flush=True,
    )
    for case in CASES:
        step = 1e-2 if "10 ms" in case.name else 1e-3
        theirs: list[float | None] = [None, None]
        if peer and case.theirs is not None:
            models = ("", False), (HARD.format(2 * step), True)
            theirs = [tried(partial(case.theirs, *model)) for model in models]
        numbers = [case.expected, tried(case.ours), *theirs]
        print(f"| {case.name} | {case.unit} | {' | '.join(shown(x) for x in numbers)} |", flush=True)


if __name__ == "__main__":
    main()

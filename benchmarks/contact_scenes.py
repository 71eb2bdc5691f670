"""Scenes of bodies that touch, beside MuJoCo: a gripper with a box, stacks of boxes, piles, robots on their feet.

    COUPLER_THREADS=2 python benchmarks/contact_scenes.py [name ...]

Both simulate the same scene, written by coupler as MJCF, in steps of 1 ms, from rest, until it has settled; then steps
are timed, calls interleaved in one process, and the best of many counts (by CPU time if COUPLER_THREADS is 1, which
other work on the machine disturbs least). MuJoCo runs with its defaults but for round
friction cones, as ours are; its contacts are soft and may be left to creep, ours are hard. So each scene tells what
state both are in: contacts, residual, overlaps, how fast it still moves, and the weight that the ground bears.

Robots stand by springs and dampers at their joints, with armatures for rotors. The Mini Cheetah (of simulation.py)
stands on four balls on a height field; the MIT Humanoid has a ball at each of its 18 contact points; Cassie has all
shapes of its file, which is named by CASSIE (../shared/models/cassie_menagerie/cassie_nomesh.xml; skipped where there
is none).
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import coupler
from common.timing import best_in_rounds
from coupler.algorithms.baselines import with_armatures
from coupler.model import (
    Box,
    Capsule,
    Cylinder,
    Free,
    Geometry,
    HeightField,
    ModelWarning,
    Plane,
    Prismatic,
    Robot,
    Shape,
    Sphere,
)
from coupler.model.compose import compose
from coupler.spatial import Transform

try:
    mujoco: Any = import_module("mujoco")
    Rollout: Any = import_module("mujoco.rollout").Rollout
except ImportError as error:
    print(f"skipped: this compares with MuJoCo, and there is no module {error.name}; pip install 'mujoco>=4'")
    sys.exit()

STEP, FRICTION = 1e-3, 0.6
SETTLE, SETTLE_PILE = 1000, 4000  # steps
STATES, STEPS = 1024, 20  # of a batch
THREADS = int(os.environ.get("COUPLER_THREADS", len(os.sched_getaffinity(0))))
CLOCK = time.process_time if THREADS == 1 else time.perf_counter
SIDE = 0.1  # m
GRIP = 20.0  # N
FEET = "*_ball on hills"
CASSIE = Path(os.environ.get("CASSIE", "../shared/models/cassie_menagerie/cassie_nomesh.xml"))
CASSIE_MOTORS = ("hip-roll", "hip-yaw", "hip-pitch", "knee", "foot")


def free_body(b: coupler.RobotBuilder, name: str, shape: Geometry, mass: float = 1.0) -> None:
    b.body(name, mass=mass, inertia=(mass * SIDE**2 / 6.0,) * 3)
    b.joint(f"{name}_floats", Free(), "ground", name)
    b.shape(name, shape, friction=FRICTION, name=name)


def stack(boxes: int) -> tuple[Robot, np.ndarray, np.ndarray]:
    """Boxes on each other, each a little aside; with positions and forces."""
    b = coupler.RobotBuilder(f"stack_of_{boxes}")
    for i in range(boxes):
        free_body(b, f"box{i}", Box((SIDE,) * 3))
    b.shape("ground", Plane(), friction=FRICTION, name="floor")
    robot = b.build()
    places = {f"box{i}_floats": [0.005 * (i % 2), 0.003 * i, SIDE * (i + 0.5), 1, 0, 0, 0] for i in range(boxes)}
    return robot, robot.pack_q(places), np.zeros(robot.nv)


def gripper() -> tuple[Robot, np.ndarray, np.ndarray]:
    """Two fingers on rails that hold a box above the ground."""
    b = coupler.RobotBuilder("gripper")
    for name in ("left", "right"):
        b.body(name, mass=0.2, inertia=(1e-4,) * 3)
        rail = Transform.translation(np.array([0.0, 0.0, 0.5]))
        b.joint(f"{name}_slides", Prismatic(axis=(1.0, 0.0, 0.0)), "ground", name, at=rail)
        b.shape(name, Box((0.02, 0.06, 0.08)), friction=FRICTION, name=name)
    free_body(b, "box", Box((SIDE,) * 3), mass=0.5)
    b.shape("ground", Plane(), friction=FRICTION, name="floor")
    robot = b.build()
    apart = 0.5 * SIDE + 0.01
    q = robot.pack_q({"left_slides": -apart, "right_slides": apart, "box_floats": [0, 0, 0.5, 1, 0, 0, 0]})
    tau = robot.pack_v({"left_slides": GRIP, "right_slides": -GRIP, "box_floats": np.zeros(6)})
    return robot, q, tau


def pile(bodies: int) -> tuple[Robot, np.ndarray, np.ndarray]:
    """Boxes, balls, capsules and cylinders that fall onto a heap."""
    b, rng = coupler.RobotBuilder(f"pile_of_{bodies}"), np.random.default_rng(0)
    kinds = [Box((SIDE, SIDE, 0.8 * SIDE)), Sphere(0.5 * SIDE), Capsule(0.3 * SIDE, SIDE), Cylinder(0.4 * SIDE, SIDE)]
    places = {}
    for i in range(bodies):
        free_body(b, f"body{i}", kinds[i % len(kinds)])
        turn = rng.normal(size=4)
        at = [*(0.1 * rng.normal(size=2)), 0.1 + 0.12 * i]
        places[f"body{i}_floats"] = [*at, *(turn / np.linalg.norm(turn))]
    b.shape("ground", Plane(), friction=FRICTION, name="floor")
    robot = b.build()
    return robot, robot.pack_q(places), np.zeros(robot.nv)


def hills(points: int) -> HeightField:
    """Smooth ground, 6 cm from its lowest to its highest point, 4 cm between grid points; in float32, as MuJoCo's."""
    rng, x = np.random.default_rng(0), 0.04 * np.arange(points)
    waves = [(rng.normal(size=2) * 4.0, rng.uniform(0.0, 2.0 * np.pi)) for _ in range(12)]
    heights = sum(np.sin(k[0] * x[:, None] + k[1] * x[None] + phase) for k, phase in waves)
    shares = ((heights - np.min(heights)) / np.ptp(heights)).astype(np.float32)
    return HeightField(0.06 * shares.astype(float), (0.04 * (points - 1),) * 2)


def cheetah(points: int) -> tuple[Robot, np.ndarray, np.ndarray]:
    """The Mini Cheetah on hills."""
    from simulation import ANGLES, FRICTION, held  # type: ignore[import-not-found]

    robot = coupler.robots.load("mini_cheetah")
    robot = held(with_armatures(robot, [body for body in robot.body_names if "rotor" in body]))
    ground = Shape("hills", "ground", hills(points), Transform.identity(), friction=FRICTION)
    feet = [shape for shape in robot.shapes if shape.name.endswith("_ball")]
    robot = replace(robot, name=f"cheetah{points}", shapes=(*feet, ground))
    legs = {name: a for name in robot.independent_joints for part, a in ANGLES.items() if part in name}
    return robot, robot.pack_q({**legs, "floating_base": [0.1, 0.05, 0.36, 1, 0, 0, 0]}), np.zeros(robot.nv)


def standing(robot: Robot, positions: dict[str, Any], stiffness: float, damping: float) -> Robot:
    """A robot whose joints are held by springs and dampers at these positions, as many as are single numbers."""
    joints = []
    for joint in robot.joints:
        if joint.name in positions and joint.kind.nv == joint.kind.nq == 1:
            kind = replace(joint.kind, stiffness=stiffness, damping=damping, rest=positions[joint.name])
            joint = replace(joint, kind=kind)
        joints.append(joint)
    held = compose(robot.name, robot.gravity, robot.bodies, joints, robot.loops, robot.couplings, robot.elements)
    return replace(held, shapes=robot.shapes)


def humanoid() -> tuple[Robot, np.ndarray, np.ndarray]:
    """The MIT Humanoid, a ball at each of its contact points."""
    robot = coupler.robots.load("mit_humanoid")
    robot = with_armatures(robot, [body for body in robot.body_names if "rotor" in body])
    balls = [
        Shape(f"{name}_ball", body.name, Sphere(0.01), Transform.translation(at), friction=FRICTION)
        for body in robot.bodies.values()
        for name, at in body.contacts.items()
    ]
    rest = dict.fromkeys(robot.independent_joints, 0.0)
    robot = standing(replace(robot, name="humanoid", shapes=tuple(balls)), rest, 600.0, 20.0).with_floor(FRICTION)
    q = robot.neutral()
    lowest = min(coupler.frame_pose(robot, q, name)[2, 3] for body in robot.bodies.values() for name in body.contacts)
    q[2] += 0.01 - lowest
    return robot, q, np.zeros(robot.nv)


def cassie() -> tuple[Robot, np.ndarray, np.ndarray]:
    """Cassie in its home pose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        robot = coupler.load(CASSIE)
    q = robot.keyframes["home"][0]
    positions = robot.joint_positions(q)
    held = {name: float(positions[name]) for name in positions if name.partition("-")[2] in CASSIE_MOTORS}
    robot = standing(replace(robot, name="cassie"), held, 400.0, 10.0).with_floor(FRICTION)
    return robot, q, np.zeros(robot.nv)


def in_mujoco(robot: Robot) -> Any:
    fields = [shape for shape in robot.shapes if isinstance(shape.geometry, HeightField)]
    plain = replace(robot, shapes=tuple(shape for shape in robot.shapes if shape not in fields))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        spec = mujoco.MjSpec.from_file(str(plain.save(Path(folder) / "scene.xml")))
    for shape in fields:
        assert isinstance(shape.geometry, HeightField)
        heights, size = shape.geometry.heights, shape.geometry.size
        span = float(np.ptp(heights))
        asset = spec.add_hfield(name=shape.name, nrow=heights.shape[1], ncol=heights.shape[0])
        asset.size, asset.userdata = [*(0.5 * size), span, 1.0], (heights.T.ravel() - heights.min()) / span
        geom = spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname=shape.name)
        geom.pos, geom.friction[0] = [0.0, 0.0, heights.min()], shape.friction
    model = spec.compile()
    model.opt.timestep, model.opt.cone = STEP, mujoco.mjtCone.mjCONE_ELLIPTIC
    return model


def borne(robot: Robot, ours: coupler.Simulation, model: Any, data: Any) -> str:
    """A line for messages: the weight of the scene, and the vertical force that the ground bears in both."""
    fixed = {shape.name for shape in robot.shapes if shape.body == "ground"}
    on_ground = [name.split(", ")[0].split(" on ")[-1] in fixed for name in ours.contacts]
    force, theirs = np.zeros(6), 0.0
    for i in range(data.ncon):
        contact = data.contact[i]
        bodies = [int(model.geom_bodyid[geom]) for geom in contact.geom]
        if 0 in bodies:
            mujoco.mj_contactForce(model, data, i, force)
            theirs += (1.0 if bodies[0] == 0 else -1.0) * float(contact.frame[2::3] @ force[:3])
    weight = -robot.mass * robot.gravity[2]
    return f"weight {weight:.2f} N, borne {ours.contact_forces[on_ground, 2].sum():.2f} and {theirs:.2f} N"


def started(robot: Robot, q: np.ndarray, tau: np.ndarray) -> tuple[Any, Any]:
    """MuJoCo's model and data of a scene."""
    model = in_mujoco(robot)
    data, positions = mujoco.MjData(model), robot.joint_positions(q)
    for j in range(model.njnt):
        name, at = model.joint(j).name, model.jnt_qposadr[j]
        value = np.atleast_1d(positions[name])
        data.qpos[at : at + value.size] = value
        if value.size == 1 and tau.any():
            data.qfrc_applied[model.jnt_dofadr[j]] = tau[robot.v_slice(name)][0]
    return model, data


def times_of_batch(
    robot: Robot, ours: coupler.Simulation, tau: np.ndarray, contacts: str, model: Any, data: Any
) -> Any:
    """Seconds of a step of a batch, all of whose states are where both are now."""
    q0, v0 = np.repeat(ours.q[None], STATES, axis=0), np.repeat(ours.v[None], STATES, axis=0)
    controls = np.tile(tau, (STEPS, 1))
    state = np.zeros(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    datas, states = [mujoco.MjData(model) for _ in range(THREADS)], np.tile(state, (STATES, 1))
    with Rollout(nthread=THREADS) as pool:
        several: dict[str, Callable[[], object]] = {
            "ours": lambda: coupler.rollout(robot, q0, v0, controls, STEP, contacts=contacts),
            "mujoco": lambda: pool.rollout(model, datas, states, nstep=STEPS),
        }
        return {name: t / (STATES * STEPS) for name, t in best_in_rounds(several, 1, rounds=8, clock=CLOCK).items()}


def row(robot: Robot, q: np.ndarray, tau: np.ndarray, contacts: str = "*", settle: int = SETTLE) -> None:
    """Prints one scene."""
    start = time.perf_counter()
    ours = coupler.Simulation(robot, STEP, q=q, contacts=contacts)
    ours.step(tau)
    first = time.perf_counter() - start
    model, data = started(robot, q, tau)
    worst = 0.0
    for _ in range(settle):
        ours.step(tau)
        mujoco.mj_step(model, data)
        worst = max(worst, ours.status.residual)
    calls = {"ours": lambda: ours.step(tau), "mujoco": lambda: mujoco.mj_step(model, data)}
    found = best_in_rounds(calls, 20, rounds=50, clock=CLOCK)
    batch = times_of_batch(robot, ours, tau, contacts, model, data)
    overlaps = max(-ours.gaps.min(initial=0.0), 0.0), max(-data.contact.dist.min(initial=0.0), 0.0)
    status = ours.status
    print(
        f"{robot.name:14s} {found['ours'] * 1e6:8.1f} {found['mujoco'] * 1e6:8.1f} µs "
        f"{found['mujoco'] / found['ours']:5.2f} ×   batch {batch['ours'] * 1e6:7.2f} {batch['mujoco'] * 1e6:7.2f} µs "
        f"{batch['mujoco'] / batch['ours']:5.2f} ×   first step {first:4.1f} s\n"
        f"{'':14s} {len(ours.gaps)} candidates, contacts {status.contacts} and {data.ncon}; sweeps {status.sweeps}, "
        f"iterations {status.iterations} and {int(data.solver_niter[: max(data.nisland, 1)].sum())}; residual now "
        f"{status.residual:.0e}, worst {worst:.0e} m/s\n"
        f"{'':14s} {borne(robot, ours, model, data)}; overlap {overlaps[0]:.0e} and {overlaps[1]:.0e} m; largest "
        f"velocity {np.abs(ours.v).max():.0e} and {np.abs(data.qvel).max():.0e}"
    )


def main(names: list[str]) -> None:
    scenes: dict[str, Callable[[], tuple[Robot, np.ndarray, np.ndarray]]] = {
        "gripper": gripper,
        "stack5": lambda: stack(5),
        "stack10": lambda: stack(10),
        "pile20": lambda: pile(20),
        "pile50": lambda: pile(50),
        "cheetah": lambda: cheetah(101),
        "cheetah_far": lambda: cheetah(1001),
        "humanoid": humanoid,
        "cassie": cassie,
    }
    if unknown := [name for name in names if name not in scenes]:
        sys.exit(f"there is no scene {unknown[0]!r}; there are {', '.join(scenes)}")
    print(
        f"Scenes in steps of {STEP * 1e3:g} ms: ours, MuJoCo {mujoco.__version__}, ratio; {THREADS} threads in batches"
    )
    for name, scene in scenes.items():
        if names and name not in names:
            continue
        if name == "cassie" and not CASSIE.exists():
            print(f"{name:14s} skipped: there is no {CASSIE}")
            continue
        row(*scene(), FEET if "cheetah" in name else "*", SETTLE_PILE if "pile" in name else SETTLE)


if __name__ == "__main__":
    main(sys.argv[1:])

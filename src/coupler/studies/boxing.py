"""RH5 Manus boxes: its poses, and its actuators with hybrid and analytical loops [003, Fig. 5, 6].

The paper's motion comes from optimal control and its curves from the real robot; neither is public. Another motion
stands for it here: from guard to a jab with the left, back, a cross with the right, and back, along cycloids. In place
of the robot, the analytical model is simulated, driven with the forces that the hybrid one computes, and held to the
motion by springs and dampers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coupler.dynamics import inverse_dynamics
from coupler.inertia import mass_matrix
from coupler.kinematics import body_poses, frame_pose
from coupler.model import Robot
from coupler.model.tree import GROUND
from coupler.simulate import Simulation
from coupler.studies.cycloid import cycloid
from coupler.studies.report import save_table, verdict, with_pyplot
from coupler.studies.rh5 import Motion, actuation, actuator_forces, actuator_positions, reduced

SEGMENT, STEP = 0.4, 1e-3  # s, from one pose to the next, and of the simulation
ARM = {"Shoulder1": -0.8, "Shoulder2": 0.1, "Shoulder3": -1.3, "Elbow": -1.7, "WristRoll": 0.0}
PUNCH = {"Shoulder1": -1.5, "Shoulder2": 0.1, "Shoulder3": -1.3, "Elbow": -0.15, "WristRoll": 1.2}
BODIES = {"guard": (0.0, 0.0, 0.0), "jab": (0.15, -0.1, -0.4), "cross": (0.2, 0.15, 0.6)}  # pitch, roll and yaw, rad
POSES = ("guard", "jab", "guard", "cross", "guard")
ACTUATORS = ("BodyActL", "BodyActR", "ALElbowAct", "ARElbowAct")
STIFFNESS, DAMPING = 400.0, 40.0  # of what holds joints to the motion, by unit of inertia: 1/s² and 1/s
SHOWN = 9  # figures


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    robots = {way: reduced(way) for way in ("hybrid", "analytical")}
    motion = boxing(robots["hybrid"])
    if name == "003-fig5":
        _poses(name, folder, robots["analytical"], motion)
    else:
        _actuators(name, folder, robots, motion)


def boxing(robot: Robot) -> Motion:
    """The reference motion: from pose to pose, at rest at each."""
    keys = np.array([[_angle(joint, pose) for joint in robot.independent_joints] for pose in POSES])
    steps = round(SEGMENT / STEP)
    s, ds, dds = cycloid(STEP * np.arange(steps)[:, None], SEGMENT)
    ways = list(zip(keys[:-1], keys[1:] - keys[:-1], strict=True))
    y, v, a = (
        np.concatenate(parts)
        for parts in zip(*((start + s * way, ds * way, dds * way) for start, way in ways), strict=True)
    )
    return Motion(STEP * np.arange(steps * len(ways)), y, v, a)


def _angle(joint: str, pose: str) -> float:
    if joint.startswith("Body"):
        return BODIES[pose][("BodyPitch", "BodyRoll", "BodyYaw").index(joint)]
    punches = {"jab": "AL", "cross": "AR"}.get(pose)
    return (PUNCH if joint[:2] == punches else ARM)[joint[2:]]


def _poses(name: str, folder: Path, robot: Robot, motion: Motion) -> None:
    """Saves a table of the hands' positions at some instants, and stick figures from the side and from the front."""
    at = np.linspace(0, len(motion.t) - 1, SHOWN).round().astype(int)
    q = motion.positions(robot)[at]
    hands = {side: frame_pose(robot, q, f"{side}_hand")[:, :3, 3] for side in ("left", "right")}
    rows = [[f"{motion.t[k]:.2f}", *hands["left"][i], *hands["right"][i]] for i, k in enumerate(at)]
    head = ["time, s", *(f"{side} hand, {axis}" for side in hands for axis in "xyz")]
    save_table(folder / f"{name}.csv", head, rows)
    reach = [float(np.ptp(hands[side][:, 0])) for side in hands]
    outcome = "differs: the paper's motion is not public, and this one is ours"
    verdict("boxing motion", "photographs", f"hands reach {reach[0]:.2f} and {reach[1]:.2f} m forward", outcome)
    places = dict(zip(robot.body_names, np.moveaxis(body_poses(robot, q)[..., :3, 3], 1, 0), strict=True))
    bones = [(joint.parent, joint.child, "Act" in joint.name) for joint in robot.joints if joint.parent != GROUND]

    def draw(plt: Any) -> None:
        figure, axes = plt.subplots(2, SHOWN, sharex="row", sharey=True, figsize=(2 * SHOWN, 5))
        for i, k in enumerate(at):
            for axis, view in zip(axes[:, i], ((0, 2), (1, 2)), strict=True):
                for parent, child, is_actuator in bones:
                    ends = np.stack([places[parent][i], places[child][i]])
                    axis.plot(*ends[:, view].T, "C1" if is_actuator else "k", linewidth=1.5)
                for wrist, side in (("ALWristRoll_Link", "left"), ("ARWristRoll_Link", "right")):
                    ends = np.stack([places[wrist][i], hands[side][i]])
                    axis.plot(*ends[:, view].T, "C0o-", markevery=[1])
                axis.set_aspect("equal")
            axes[0, i].set_title(f"{motion.t[k]:.2f} s")
        axes[0, 0].set_ylabel("from the side")
        axes[1, 0].set_ylabel("from the front")
        figure.suptitle("a motion of our own, in place of the paper's")

    with_pyplot(folder / f"{name}.png", draw)


def _actuators(name: str, folder: Path, robots: dict[str, Robot], motion: Motion) -> None:
    """Positions and forces of actuators by both models, and those of the simulated robot."""
    seen = {way: actuation(robot, motion) for way, robot in robots.items()}
    print("both models evaluated; the robot is simulated", flush=True)
    tracked, applied = track(robots["analytical"], robots["hybrid"], motion)
    columns = [robots["hybrid"].actuated_joints.index(joint) for joint in ACTUATORS]
    rows: list[list[Any]] = []
    for i, joint in zip(columns, ACTUATORS, strict=True):
        apart = [
            np.sqrt(((getattr(seen["hybrid"], x) - getattr(seen["analytical"], x))[:, i] ** 2).mean())
            for x in ("position", "force")
        ]
        missed = np.sqrt(((tracked - seen["analytical"].position)[:, i] ** 2).mean())
        strongest = np.abs(seen["analytical"].force[:, i]).max()
        rows.append([joint, f"{apart[0]:.1e}", f"{apart[1]:.1e}", f"{missed:.1e}", strongest])
    head = ["actuator", "RMS hybrid to analytical, m", "in N", "RMS tracked, m", "largest force, N"]
    save_table(folder / f"{name}.csv", head, rows)
    worst = [max(float(row[k]) for row in rows) for k in (1, 2, 3)]
    ours = f"{worst[0]:.0e} m and {worst[1]:.0e} N between the models"
    outcome = "better: none but rounding" if max(worst[:2]) < 1e-9 else "differs"
    verdict("hybrid against analytical", '"without any significant loss of performance"', ours, outcome)
    outcome = "agrees, in a simulation and with another motion" if worst[2] < 1e-3 else "differs"
    verdict("tracking, RMS", '"can be tracked"', f"{1e3 * worst[2]:.2g} mm", outcome)
    curves = {
        f"{way}_{x}": getattr(result, x)[:, columns] for way, result in seen.items() for x in ("position", "force")
    }
    curves |= {"tracked_position": tracked[:, columns], "applied_force": applied[:, columns]}
    np.savez(folder / f"{name}.npz", t=motion.t, **curves)  # type: ignore[arg-type]

    def draw(plt: Any) -> None:
        figure, axes = plt.subplots(2, len(ACTUATORS), sharex=True, figsize=(4 * len(ACTUATORS), 6))
        for i, joint in enumerate(ACTUATORS):
            for axis, x, done in ((axes[0, i], "position", "tracked"), (axes[1, i], "force", "applied")):
                axis.plot(motion.t, curves[f"analytical_{x}"][:, i], "k-", label="analytical")
                axis.plot(motion.t, curves[f"hybrid_{x}"][:, i], "C1--", label="hybrid")
                axis.plot(motion.t, curves[f"{done}_{x}"][:, i], "C0:", label=f"{done}, simulated")
            axes[0, i].set_title(joint)
            axes[1, i].set_xlabel("time, s")
        axes[0, 0].set_ylabel("position, m")
        axes[1, 0].set_ylabel("force, N")
        axes[0, 0].legend()
        figure.suptitle("(a) positions and (b) forces in a motion of our own, in place of the paper's")

    with_pyplot(folder / f"{name}.png", draw)


def track(plant: Robot, model: Robot, motion: Motion) -> tuple[np.ndarray, np.ndarray]:
    """Positions and forces of actuators, n × actuators, of a simulated robot that another model drives."""
    q_model = motion.positions(model)
    forces, H = inverse_dynamics(model, q_model, motion.v, motion.a), mass_matrix(model, q_model)
    at = [plant.q_slice(joint).start for joint in plant.independent_joints]

    def control(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        k = min(round(t / STEP), len(motion.t) - 1)
        return forces[k] + H[k] @ (STIFFNESS * (motion.y[k] - q[at]) + DAMPING * (motion.v[k] - v))

    start = motion.positions(plant)[0]
    log = Simulation(plant, step=STEP, q=start, v=motion.v[0], contacts=[]).run(STEP * (len(motion.t) - 1), control)
    tau = np.stack([control(*state) for state in zip(log.times, log.q, log.v, strict=True)])
    return actuator_positions(plant, log.q), actuator_forces(plant, log.q, tau)

"""CHARMIE in pictures: body 5, main bodies, the whole robot, its motion, and an animation [004, Fig. 4, 6, 8, 11].

The paper's pictures are of its CAD model and of point clouds that it does not print, but for body 5. Here, bodies are
sticks between their joints, and body 3 is a box of our own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from coupler.forces import joint_forces
from coupler.grouping import grouped
from coupler.kinematics import body_poses
from coupler.model import ModelError
from coupler.robots.charmie import POINTS
from coupler.studies.charmie_chain import charmie_chain
from coupler.studies.charmie_loops import PAPER_RULE
from coupler.studies.charmie_motion import paper_motion, robot_by_actuators
from coupler.studies.charmie_pictures import BODY_5, Stage
from coupler.studies.report import keep_picture, save_table, verdict, with_pyplot

FRAMES, FRAMES_A_SECOND = 101, 20
INSTANT = 1.3  # s [Fig. 11]
LONGEST = 0.35  # m, the longest arrows
RED, ORANGE = "#CC2222", "#E69F00"


def run(name: str, folder: Path) -> None:
    """Runs the study; see `coupler.studies.run`."""
    {
        "004-fig4": _body_5,
        "004-fig6": _assembled,
        "004-fig8": _assembled,
        "004-fig11": _in_motion,
        "004-animation": _animation,
    }[name](name, folder)


def _body_5(name: str, folder: Path) -> None:
    places = {point: frame.r for point, frame in robot_by_actuators().bodies["5"].frames.items()}
    rows = [[point.partition(".")[2], *(1e3 * at)] for point, at in places.items()]
    save_table(folder / f"{name}.csv", ["point of body 5", "x, mm", "y, mm", "z, mm"], rows)
    printed = {f"5.{point}": np.array(at) / 1e3 for point, at in POINTS["5"].items()}
    same = sum(np.array_equal(places[point], at) for point, at in printed.items())
    verdict("points of body 5", "14", str(same), "agrees" if same == len(places) == 14 else "differs")

    def draw(plt: Any) -> None:
        axes = plt.figure(figsize=(5, 7)).add_subplot(projection="3d")
        for first, second in BODY_5:
            axes.plot(*np.stack([places[f"5.{first}"], places[f"5.{second}"]]).T, "C0-")
        at_place = grouped(places, lambda point: tuple(places[point]))
        for at, points in at_place.items():
            axes.scatter(*at, color="k", s=12)
            below = any(0.0 < other[2] - at[2] < 0.03 and other[:2] == at[:2] for other in at_place)
            axes.text(
                *at, f"  {', '.join(point.partition('.')[2] for point in points)}", va="top" if below else "bottom"
            )
        axes.set_box_aspect(np.ptp(np.array(list(places.values())), axis=0) + 0.05)
        axes.set(xticks=[-0.2, 0.0, 0.2], yticks=[0.0, 0.05])
        axes.set(xlabel="x, m", ylabel="y, m", zlabel="z, m", title="body 5 in its own axes")

    with_pyplot(folder / f"{name}.png", draw)


def _assembled(name: str, folder: Path) -> None:
    """Draws the robot with all joints at zero: main bodies (Fig. 6), or all bodies (Fig. 8)."""
    robot, whole = robot_by_actuators(), name == "004-fig8"
    q = paper_motion(2).q[0]
    bodies = robot.body_names if whole else list(charmie_chain().links)
    poses = dict(zip(robot.body_names, body_poses(robot, q), strict=True))
    save_table(folder / f"{name}.csv", ["body", "x, m", "y, m", "z, m"], [[b, *poses[b][:3, 3]] for b in bodies])
    paper = 40 if whole else 26
    verdict("bodies", str(paper), str(len(bodies)), "agrees" if len(bodies) == paper else "differs")
    if whole:
        worst = max(float(error) for error in robot.loop_errors(q).values())
        verdict("loops", "7 of joints 34 R, 10 P and 3 F", f"{len(robot.loops)}, closed to {worst:.0e} m", "agrees")
    _save_stage(folder / f"{name}.png", lambda: [Stage(robot, auxiliary=whole).picture(q, title="all joints at zero")])


def _in_motion(name: str, folder: Path) -> None:
    """Draws the robot at the start, and at 1.3 s with arrows of velocities and forces."""
    robot, chain = robot_by_actuators(), charmie_chain()
    motion = paper_motion(1001)
    k = int(np.abs(motion.t - INSTANT).argmin())
    q, v, a = motion.q[k], motion.v[k], motion.a[k]
    forces = joint_forces(robot, q, v, a, rule=PAPER_RULE)
    poses = dict(zip(robot.body_names, body_poses(robot, q), strict=True))
    moving = [body for body, link in chain.links.items() if link.JT != "F"]
    at = np.array([poses[body][:3, 3] for body in moving])
    force = np.array([poses[body][:3, :3] @ forces.joints[body][3:] for body in moving])
    around = body_poses(robot, motion.q[[k - 1, k + 1]])[..., :3, 3]
    speeds = dict(zip(robot.body_names, (around[1] - around[0]) / (motion.t[k + 1] - motion.t[k - 1]), strict=True))
    speed = np.array([speeds[body] for body in moving])
    rows = [[body, *x, *f, *w] for body, x, f, w in zip(moving, at, force, speed, strict=True)]
    head = [f"t = {motion.t[k]:.2f} s", "x, m", "y, m", "z, m", "force x, N", "y", "z", "velocity x, m/s", "y", "z"]
    save_table(folder / f"{name}.csv", head, rows)
    down = motion.q[0][robot.q_slice("4").start] - q[robot.q_slice("4").start]
    ours = f"all actuators move backwards, body 4 is {1e3 * down:.1f} mm lower"
    verdict("pose at 1.3 s", "red arrows, no numbers", ours, "agrees: in signs; it prints no numbers")
    arrows = [
        (at, LONGEST * speed / np.linalg.norm(speed, axis=1).max(), RED, "velocities of bodies"),
        (at, LONGEST * _shrunk(force), ORANGE, "forces on bodies by those before them (square root)"),
    ]
    _save_stage(
        folder / f"{name}.png",
        lambda: [
            Stage(robot).picture(motion.q[0], title="(a) t = 0 s"),
            Stage(robot).picture(q, arrows, f"(b) t = {motion.t[k]:.1f} s"),
        ],
    )


def _animation(name: str, folder: Path) -> None:
    motion = paper_motion(FRAMES)
    try:
        stage = Stage(robot_by_actuators())
    except ModelError as error:
        print(error)
        return
    from PIL import Image  # type: ignore[import-not-found]  # which matplotlib needs, too

    frames = []
    for q in motion.q:
        stage.show(q)
        frames.append(Image.fromarray(stage.pixels()).convert("RGB").quantize(32))
    path = folder / f"{name}.gif"
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=1000 // FRAMES_A_SECOND, loop=0)
    keep_picture(path)
    verdict("animation", "a video of the motion", f"{FRAMES} frames of {motion.t[-1]:g} s", "agrees: the same motion")


def _shrunk(vectors: np.ndarray) -> np.ndarray:
    """Vectors whose lengths are the square roots of theirs, the longest 1: so that small ones are seen as well."""
    sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.sqrt(np.maximum(sizes, 1e-12) * sizes.max())


def _save_stage(path: Path, pictures: Any) -> None:
    """Pictures of stages, side by side, if matplotlib is installed."""

    def draw(plt: Any) -> None:
        shown = pictures()
        _, axes = plt.subplots(1, len(shown), figsize=(6 * len(shown), 6), squeeze=False)
        for axis, picture in zip(axes.ravel(), shown, strict=True):
            axis.imshow(picture)
            axis.axis("off")

    with_pyplot(path, draw)

"""An arm with a gripper picks up a box and stacks it on another one.

The scene is a robot made of robots: the arm from its file, two boxes and a floor. The controller speaks in joint
targets, which it finds from places of the tool by damped least squares, and computes torques by inverse dynamics. The
linkage of the gripper is a cluster like any other.

Run it with the xArm 7 of MuJoCo Menagerie: `python examples/pick_and_stack.py .../ufactory_xarm7/xarm7.xml`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import coupler
from coupler import Robot, RobotBuilder, Simulation
from coupler.model import Box

SIDE = 0.04  # m, of the boxes
TOOL, FINGER = "link_tcp", "left_driver_joint"  # the second is what tau has of the gripper
FROM, ONTO = np.array([0.40, -0.15]), np.array([0.45, 0.10])  # m, where the boxes stand
OPEN, CLOSE = -15.0, 15.0  # N m, at the finger's joint
STIFFNESS, DAMPING = 3600.0, 120.0  # 1/s² and 1/s, of the servos


def scene(arm: Robot) -> Robot:
    """The arm, a floor, and two boxes on it."""
    b = RobotBuilder("cell")
    b.attach(arm)
    b.floor(friction=0.6)
    for name, place in (("upper", FROM), ("lower", ONTO)):
        b.object(name, Box((SIDE, SIDE, SIDE)), at=(*place, SIDE / 2), density=500.0, friction=0.8)
    return b.build()


def reach(arm: Robot, q: np.ndarray, place: np.ndarray, joints: slice) -> np.ndarray:
    """The arm's configuration in which its tool is at a place, looking down, near another configuration."""
    down = coupler.frame_pose(arm, arm.keyframes["home"][0], TOOL)[:3, :3]
    for _ in range(200):
        T = coupler.frame_pose(arm, q, TOOL)
        turn = 0.5 * sum(np.cross(T[:3, i], down[:, i]) for i in range(3))
        error = np.concatenate([turn, place - T[:3, 3]])
        if np.abs(error).max() < 1e-9:
            return q
        J = coupler.frame_jacobian(arm, q, TOOL, axes="world")[:, joints]
        step = np.zeros(arm.nv)
        step[joints] = J.T @ np.linalg.solve(J @ J.T + 1e-6 * np.eye(6), error)
        q = arm.integrate(q, step)
    raise ValueError(f"the tool does not come to {place}")


def pick_and_stack(arm: Robot) -> Simulation:
    """Runs the whole task; the simulation ends with one box on the other, if all went well."""
    robot = scene(arm)
    simulation = Simulation(robot, q=start(robot, arm))
    finger = robot.v_slice(FINGER)
    own = slice(0, finger.start)  # of q and of v: the arm comes first, and turns about single axes
    above, height, grasp = 0.12, SIDE / 2, 0.005
    ways = [
        (np.array([*FROM, above]), OPEN, 1.5),
        (np.array([*FROM, height + grasp]), OPEN, 1.0),
        (np.array([*FROM, height + grasp]), CLOSE, 0.6),
        (np.array([*FROM, above]), CLOSE, 1.0),
        (np.array([*ONTO, above]), CLOSE, 1.5),
        (np.array([*ONTO, SIDE + height + grasp + 5e-4]), CLOSE, 1.2),
        (np.array([*ONTO, SIDE + height + grasp + 5e-4]), OPEN, 0.6),
        (np.array([*ONTO, 2 * above]), OPEN, 1.0),
    ]
    goal = arm.keyframes["home"][0]
    for place, grip, duration in ways:
        begin, goal = goal, reach(arm, goal, place, own)
        move = Move(simulation.time, 0.8 * duration, begin[own], goal[own])

        def control(t: float, q: np.ndarray, v: np.ndarray, move: Move = move, grip: float = grip) -> np.ndarray:
            a = np.zeros(robot.nv)
            a[own] = STIFFNESS * (move.at(t) - q[own]) - DAMPING * v[own]
            tau = np.zeros(robot.nv)  # nothing drives the boxes
            tau[own] = coupler.inverse_dynamics(robot, q, v, a)[own]
            tau[finger] = grip
            return tau

        simulation.run(duration, control, every=50)
    return simulation


@dataclass(frozen=True)
class Move:
    """Joint angles that go smoothly from one place to another, rad, from a time on, for so long, s."""

    start: float
    duration: float
    begin: np.ndarray
    end: np.ndarray

    def at(self, t: float) -> np.ndarray:
        s = min((t - self.start) / self.duration, 1.0)
        return self.begin + s * s * (3 - 2 * s) * (self.end - self.begin)


def start(robot: Robot, arm: Robot) -> np.ndarray:
    """The arm at home, and the boxes where they stand."""
    positions = robot.joint_positions(robot.neutral())
    return robot.pack_q(positions | arm.joint_positions(arm.keyframes["home"][0]))


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/pick_and_stack.py .../ufactory_xarm7/xarm7.xml")
    arm = coupler.load(Path(sys.argv[1]))
    simulation = pick_and_stack(arm)
    positions = simulation.robot.joint_positions(simulation.q)
    for box in ("lower", "upper"):
        print(f"the {box} box is at {np.round(positions[box][:3], 4)} m")


if __name__ == "__main__":
    main()

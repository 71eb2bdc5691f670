"""Dynamics in maximal coordinates: all bodies move freely, and joints, loops and couplings are rows that hold them.

With the velocities V of all bodies, (ω, v of the origin) along the world's axes, body after body,

    M V̇ = f + Jᵀ λ,    J V̇ = −J̇ V.

Rows of J are written by hand for each kind of joint. J̇ V is the derivative of J V along the motion with V held, by a
complex step, so that it has all its digits. Of coupler, nothing is used but the numbers of the description, the poses
and velocities of bodies, and the positions of joints.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from coupler import body_poses, frame_velocity
from coupler.model import Coupling, Held, Robot, Rod
from coupler.spatial import Transform, skew

STEP = 1e-30  # of complex steps: there is no cancellation, so it may be as small as can be
DEPENDENT = 1e-9  # singular values of J, relative to the largest, of rows that follow from others

Pose = tuple[np.ndarray, np.ndarray]  # R, from the body's axes to the world's, and p, its origin in the world
End = tuple[np.ndarray, np.ndarray, np.ndarray]  # R and p of a frame on a body, and J, 6 × n, of its velocity


class Maximal:
    """A robot in one state, (nq,) and (nv,).

    Attributes:
        V: (n,), the velocities of all bodies.
        rows: J, one row for each freedom that something takes away.
        bias: J̇ V.
        speeds: by joint, the rows that give its velocities from V.
        speed_bias: their rates times V.
    """

    def __init__(self, robot: Robot, q: np.ndarray, v: np.ndarray) -> None:
        self.robot, self.start = robot, {name: 6 * i for i, name in enumerate(robot.bodies)}
        self.poses: dict[str, Pose] = {"ground": (np.eye(3), np.zeros(3))}
        for name, T in zip(robot.bodies, body_poses(robot, q), strict=True):
            self.poses[name] = T[:3, :3], T[:3, 3]
        self.V = np.concatenate([frame_velocity(robot, q, v, name, axes="world") for name in robot.bodies])
        self.p = {joint: np.atleast_1d(x) for joint, x in robot.joint_positions(q).items()}
        self.rows, self.speeds = self._rows(self.poses)
        moved, rates = self._rows({name: self._moved(name) for name in self.poses})
        self.bias = np.imag(moved @ self.V) / STEP
        self.speed_bias = {joint: np.imag(rate @ self.V) / STEP for joint, rate in rates.items()}
        for coupling in robot.couplings:
            if not coupling.solves:  # the others repeat what loops and couplings say
                self._couple(coupling)

    def accelerations(self, tau: Mapping[str, np.ndarray], f_ext: np.ndarray) -> dict[str, np.ndarray]:
        """The accelerations of all joints under forces along them and forces on bodies, as `forward_dynamics` takes."""
        M, f = np.zeros((len(self.V), len(self.V))), np.zeros(len(self.V))
        for (name, body), force in zip(self.robot.bodies.items(), f_ext, strict=True):
            (R, p), own = self.poses[name], slice(self.start[name], self.start[name] + 6)
            c, inertia, spin = R @ body.centre, R @ body.inertia @ R.T, self.V[own][:3]
            J = np.block([[np.eye(3), np.zeros((3, 3))], [-skew(c), np.eye(3)]])  # to the centre of mass
            M[own, own] += J.T @ np.block([[inertia, np.zeros((3, 3))], [np.zeros((3, 3)), body.mass * np.eye(3)]]) @ J
            weight = body.mass * (self.robot.gravity - np.cross(spin, np.cross(spin, c)))
            f[own] += J.T @ np.concatenate([-np.cross(spin, inertia @ spin), weight])
            f[own] += np.concatenate([force[:3] - np.cross(p, force[3:]), force[3:]])
        for joint in self.robot.joints:
            if joint.kind.nv:
                S, kind = self.speeds[joint.name], joint.kind
                deflection = kind.difference(kind.rest, self.p[joint.name])
                pull = kind.along_velocity(deflection, kind.stiffness * deflection) + kind.damping * (S @ self.V)
                M += S.T @ (kind.armature[:, None] * S)
                f += S.T @ (tau.get(joint.name, 0.0) - pull - kind.armature * self.speed_bias[joint.name])
        for spring in self.robot.elements:
            first = self._end(self.poses, spring.first, Transform.translation(spring.first_point))
            second = self._end(self.poses, spring.second, Transform.translation(spring.second_point))
            gap, J = second[1] - first[1], second[2][3:] - first[2][3:]
            length = np.linalg.norm(gap)
            dL = gap @ J / length
            f -= dL * (
                spring.stiffness * (length - spring.free_length) + spring.pretension + spring.damping * dL @ self.V
            )
        free = self.free()
        a = -np.linalg.lstsq(self.rows, self.bias, rcond=DEPENDENT)[0]
        a = a + free @ np.linalg.solve(free.T @ M @ free, free.T @ (f - M @ a))
        return {joint: S @ a + self.speed_bias[joint] for joint, S in self.speeds.items()}

    def free(self) -> np.ndarray:
        """A basis of the velocities that the rows leave, one column for each freedom."""
        if not len(self.rows):
            return np.eye(len(self.V))
        sizes, Vt = np.linalg.svd(self.rows)[1:]
        return Vt[int((sizes > DEPENDENT * sizes[0]).sum()) :].T

    def _moved(self, body: str) -> Pose:
        """The pose of a body an imaginary instant later."""
        (R, p), at = self.poses[body], self.start.get(body)
        spin, shift = np.zeros((2, 3)) if at is None else (self.V[at : at + 3], self.V[at + 3 : at + 6])
        return R + 1j * STEP * skew(spin) @ R, p + 1j * STEP * shift

    def _rows(self, poses: Mapping[str, Pose]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """J of all joints and loops, and the rows of the velocities of joints."""
        held, speeds = [np.zeros((0, len(self.V)))], {}
        for joint in self.robot.joints:
            meets = joint.meets or Transform.identity()
            ends = self._end(poses, joint.parent, joint.placement), self._end(poses, joint.child, meets)
            rows, speed = rows_of(joint.kind, *ends)
            held.append(rows)
            if joint.kind.nv:
                speeds[joint.name] = speed
        for loop in self.robot.loops:
            first = self._end(poses, loop.predecessor, loop.predecessor_frame)
            held.append(rows_of(loop.kind, first, self._end(poses, loop.successor, loop.successor_frame))[0])
        return np.concatenate(held), speeds

    def _end(self, poses: Mapping[str, Pose], body: str, frame: Transform) -> End:
        R, p = poses[body]
        across, J = R @ frame.r, np.zeros((6, len(self.V)), R.dtype)
        if body in self.start:
            own = slice(self.start[body], self.start[body] + 6)
            J[:, own] = np.block([[np.eye(3), np.zeros((3, 3))], [-skew(across), np.eye(3)]])
        return R @ np.asarray(frame.E).T, p + across, J

    def _couple(self, coupling: Coupling) -> None:
        """Adds the rows of a coupling of joints of one freedom each."""
        p = np.concatenate([self.p[joint] for joint in coupling.joints])
        S = np.concatenate([self.speeds[joint] for joint in coupling.joints])
        rate = S @ self.V

        def jacobian(at: np.ndarray) -> np.ndarray:
            columns = [np.imag(coupling.residual(at + 1j * STEP * unit)) / STEP for unit in np.eye(len(p))]
            return np.transpose(np.asarray(columns, float))

        bias = np.concatenate([self.speed_bias[joint] for joint in coupling.joints])
        h = 2e-3 / max(1.0, float(np.abs(rate).max()))  # differences of order 8
        weights = enumerate((4 / 5, -1 / 5, 4 / 105, -1 / 280), 1)
        turning = sum(w / h * (jacobian(p + i * h * rate) - jacobian(p - i * h * rate)) for i, w in weights)
        self.rows = np.concatenate([self.rows, jacobian(p) @ S])
        self.bias = np.concatenate([self.bias, jacobian(p) @ bias + turning @ rate])


def rows_of(kind: Any, first: End, second: End) -> tuple[np.ndarray, np.ndarray]:
    """What a joint or loop prevents, and the velocities that it leaves, as rows for the velocities of bodies."""
    (R, p, J), (R2, p2, J2) = first, second
    w = J2[:3] - J[:3]  # how the second turns against the first
    u = J2[3:] - J[3:] + skew(p2 - p) @ J[:3]  # how its origin moves, seen from the first
    none = np.zeros((0, w.shape[1]))
    match kind.kind:
        case "revolute" | "continuous":
            a, b, c = axes_of(kind.axis) @ R.T
            return np.vstack([u, b @ w, c @ w]), np.vstack([a @ w])
        case "prismatic":
            a, b, c = axes_of(kind.axis) @ R.T
            return np.vstack([w, b @ u, c @ u]), np.vstack([a @ u])
        case "helical":
            a, b, c = axes_of(kind.axis) @ R.T
            return np.vstack([b @ u, c @ u, b @ w, c @ w, a @ u - kind.pitch * (a @ w)]), np.vstack([a @ w])
        case "cylindrical":
            a, b, c = axes_of(kind.axis) @ R.T
            return np.vstack([b @ u, c @ u, b @ w, c @ w]), np.vstack([a @ w, a @ u])
        case "universal":
            a, b = R @ kind.first, R2 @ kind.second
            along = np.array([[1.0, a @ b], [a @ b, 1.0]])  # a ω₁ + b ω₂ = ω
            return np.vstack([u, np.cross(a, b) @ w]), np.linalg.solve(along, np.vstack([a @ w, b @ w]))
        case "planar":
            (x, y), a = (kind.plane @ R.T), R @ kind.normal
            return np.vstack([a @ u, x @ w, y @ w]), np.vstack([x @ u, y @ u, a @ w])
        case "spherical":
            return u, R2.T @ w
        case "free":
            return none, np.vstack([R2.T @ w, R2.T @ u])
        case "fixed":
            return np.vstack([u, w]), none
    if isinstance(kind, Rod):
        return np.vstack([(p2 - p) @ (J2[3:] - J[3:])]), none
    assert isinstance(kind, Held) and not kind.axes[:, :3].any()
    return kind.axes[:, 3:] @ R.T @ u, none


def axes_of(axis: np.ndarray) -> np.ndarray:
    """3 × 3, whose rows are an axis and two directions across it."""
    b = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    b = b / np.linalg.norm(b)
    return np.stack([axis, b, np.cross(axis, b)])

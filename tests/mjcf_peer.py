"""A file in MJCF as MuJoCo itself reads it, moved to states of the robot that coupler makes of it."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import coupler
from coupler.model import Robot
from coupler.rotation import matrix_from_quaternion, quaternion_from_matrix
from peers import Equations

__all__ = ["Peer"]


class Peer:
    """A file as MuJoCo loads it, without meshes, contacts, limits and fluids."""

    def __init__(self, path: Path) -> None:
        mujoco: Any = import_module("mujoco")

        self._mujoco: Any = mujoco
        spec = mujoco.MjSpec.from_file(str(path))
        for geom in [geom for geom in spec.geoms if geom.meshname]:
            spec.delete(geom)
        for material in spec.materials:
            material.textures = [""] * len(list(material.textures))
        for asset in (*spec.meshes, *spec.textures):
            spec.delete(asset)
        self.model = spec.compile()
        option, flags = self.model.opt, mujoco.mjtDisableBit
        option.disableflags |= int(flags.mjDSBL_CONTACT) | int(flags.mjDSBL_LIMIT) | int(flags.mjDSBL_FRICTIONLOSS)
        option.viscosity, option.density, option.jacobian = 0.0, 0.0, mujoco.mjtJacobian.mjJAC_DENSE
        self.data = mujoco.MjData(self.model)

    def joints(self) -> list[str]:
        """What they are called; one without a name goes by its body's."""
        names, count = [], Counter[str]()
        for i in range(self.model.njnt):
            own = self.model.jnt(i).name
            other = f"{self.model.body(self.model.jnt_bodyid[i]).name or f'body_{self.model.jnt_bodyid[i]}'}_joint"
            count[other] += not own
            names.append(own or (other if count[other] == 1 else f"{other}_{count[other]}"))
        return names

    def move(self, robot: Robot, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Takes a closed state. A and b, with A v and A v̇ + b for the velocities and accelerations here."""
        model, data, known = self.model, self.data, robot.joint_positions(q)
        G, g = robot.explicit_constraint(q, v)
        A, b = np.zeros((model.nv, robot.nv)), np.zeros(model.nv)
        for i, name in enumerate(self.joints()):
            nq, nv = ((7, 6), (4, 3), (1, 1), (1, 1))[model.jnt_type[i]]
            adr, own = model.jnt_qposadr[i], slice(model.jnt_dofadr[i], model.jnt_dofadr[i] + nv)
            if name in known:
                entries = robot.tree.velocities(robot.tree.number[name])
                position, rows, rate = known[name], G[entries], g[entries]
                if nv == 6:  # a spatial acceleration; what follows wants that of the origin
                    w = rows @ v
                    rate = rate + np.concatenate([np.zeros(3), np.cross(w[:3], w[3:])])
            elif nv == 6:  # a weld holds it
                body = model.body(model.jnt_bodyid[i]).name
                pose = coupler.frame_pose(robot, q, body)
                position = np.concatenate([pose[:3, 3], quaternion_from_matrix(pose[:3, :3])])
                rows = coupler.frame_jacobian(robot, q, body)
                rate = coupler.frame_acceleration(robot, q, v, np.zeros(robot.nv), body)
            else:  # held where it was described
                continue
            if nv == 6:  # linear first and along the world's axes
                R = matrix_from_quaternion(position[3:])
                rows, rate = np.vstack([R @ rows[3:], rows[:3]]), np.concatenate([R @ rate[3:], rate[:3]])
            data.qpos[adr : adr + nq], A[own], b[own] = position, rows, rate
        data.qvel[:] = A @ v
        self._mujoco.mj_forward(model, data)
        return A, b

    def equations(self, A: np.ndarray, b: np.ndarray) -> Equations:
        """H and c, with springs and dampers in c."""
        H = np.empty((self.model.nv, self.model.nv))
        for column, unit in zip(H, np.eye(self.model.nv), strict=True):
            self._mujoco.mj_mulM(self.model, self.data, column, unit)
        return Equations(H, self.data.qfrc_bias - self.data.qfrc_passive).projected(A, b)

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Errors and Jacobian of its equalities."""
        J = self.data.efc_J.reshape(-1, self.model.nv)
        return self.data.efc_pos[: self.data.ne], J[: self.data.ne]

"""Actuators of a compiled model in MJCF: motors, servos and dampers, at joints, tendons, sites and more.

MuJoCo's force is gain · ctrl + bias, along a length that is the gear times that of the transmission. A gain without
bias is a motor, whose gear has the gain, so that its control is ctrl. A bias against the length makes a position servo,
one against the velocity alone a velocity servo, and a gain by the velocity a damper.

What they move is in transmissions.py.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from coupler.io.mjcf.attributes import NO_LIMIT
from coupler.io.mjcf.compilation import Compiled
from coupler.io.mjcf.files import Files
from coupler.io.mjcf.transmissions import LeftOut, is_at_ball, is_still, way_of
from coupler.io.mjcf.tree import Tree
from coupler.io.taken_names import TakenNames
from coupler.model import Adhesion, RobotBuilder
from coupler.model.wording import counted

_FIXED, _AFFINE = 0, 1  # gains
_LIMITS = {"control", "effort"}
_BIASES = (0, 1)  # none, and affine
_DIRECT, _FILTERS, _MUSCLE = 0, (2, 3), 4  # dynamics: none, those that only delay, and muscles


def add_actuators(model: Compiled, files: Files, tree: Tree, builder: RobotBuilder) -> list[str]:
    """Adds the actuators; returns a description of what is left out of them."""
    names, left_out, scaled = model.names["actuator"], Counter[tuple[str, str]](), list[str]()
    acted, served = Counter[str](), set[str]()  # the joints, and those of which a sum of forces is not cut short
    taken = TakenNames(name for name in names if name)
    for i, name in enumerate(names):
        try:
            with files.root.blamed():
                way = way_of(model, tree, i)
        except LeftOut as why:
            left_out[why.args[0], why.args[1]] += 1
            continue
        law, lost = _law(model, tree, i)
        if lost is not None:
            left_out[lost] += 1
        gain = law.pop("gain")
        if isinstance(way, Adhesion):
            if gain <= 0.0:
                left_out["adhesion that pushes", "adhesions that push"] += 1
                continue
            law |= {x: (0.0, max(law[x][1], 0.0)) if law[x][0] < 0.0 else law[x] for x in law.keys() & _LIMITS}
        if scale := law.pop("scale", None):
            scaled.append(f"{name or i + 1!r} = {scale}")
        if not isinstance(way, dict):
            with files.root.blamed():
                builder.actuator(name or taken.numbered("actuator"), way.scaled(gain), **law)
            continue
        gears = {joint: np.asarray(gear) * gain if np.ndim(gear) else gear * gain for joint, gear in way.items()}
        with files.root.blamed():
            builder.actuator(name or taken.numbered(next(iter(gears))), gears, **law)
        acted.update(gears.keys())
        limits_itself = law.get("kind", "motor") != "motor" and np.isfinite(law.get("effort", np.inf)).any()
        served |= {*gears} if len(gears) > 1 or limits_itself else set()
    limited = {tree.names.joints[j] for j in np.flatnonzero(model.jnt_actfrclimited)}
    if shared := sum(acted[joint] > 1 and joint in served for joint in limited):
        words = (
            "actfrcrange of several actuators, which keep it in another way",
            "actfrcranges of several actuators, which keep them in another way",
        )
        left_out[words] += shared
    if scaled:
        builder.remark(f"targets of servos are positions or velocities, not MuJoCo's ctrl: {', '.join(scaled)}")
    return [counted(count, *words) for words, count in left_out.items()]


def _law(model: Compiled, tree: Tree, i: int) -> tuple[dict[str, Any], tuple[str, str] | None]:
    """An actuator's control law, as arguments of `RobotBuilder.actuator`, and a description of what is lost of it."""
    dynamics, lost = int(model.actuator_dyntype[i]), None
    adr = int(model.actuator_ctrladr[i])
    clamped = bool(model.actuator_ctrllimited[adr]) and not tree.off("CLAMPCTRL")
    control = _range(model.actuator_ctrlrange[adr] if clamped else np.array([-np.inf, np.inf]))
    effort = _range(model.actuator_forcerange[i] if model.actuator_forcelimited[i] else np.array([-np.inf, np.inf]))
    if dynamics in _FILTERS:
        lost = "delay of an actuator", "delays of actuators"
    law = None
    if dynamics == _DIRECT or dynamics in _FILTERS:
        law = _affine_law(model, i, control, still=is_still(model, i))
    ball = is_at_ball(model, i)
    if dynamics == _MUSCLE:
        return {"gain": 1.0, "kind": "motor"}, ("muscle, which is a motor here", "muscles, which are motors here")
    if law is None or not effort[0] <= 0.0 <= effort[1] or (ball and law["kind"] == "position"):
        lost = "actuator's law: it is a motor here", "actuators' laws: they are motors here"
        return {"gain": 1.0, "kind": "motor"}, lost
    effort = np.sort(effort / law["gain"])
    if law["kind"] == "motor" and law["control"][0] <= 0.0 <= law["control"][1]:  # what is never asked for is a limit
        effort = np.clip(effort, *law["control"])
    return law | {"effort": tuple(effort.tolist())}, lost


def _range(given: np.ndarray) -> np.ndarray:
    """Two limits; very large ones become infinite, that is no limits."""
    return np.where(np.abs(given) < NO_LIMIT, given, np.where(given > 0.0, np.inf, -np.inf))


def _affine_law(model: Compiled, i: int, control: np.ndarray, *, still: bool) -> dict[str, Any] | None:
    """The law of gain and bias, `still` if the length is always zero; None for a law that coupler does not have."""
    gain, bias = int(model.actuator_gaintype[i]), int(model.actuator_biastype[i])
    g = np.where(np.arange(3) < (1 if gain == _FIXED else 3), model.actuator_gainprm[i, :3], 0.0)
    b = model.actuator_biasprm[i, :3] if bias == _BIASES[1] else np.zeros(3)
    if still:
        g, b = g * (1.0, 0.0, 1.0), b * (1.0, 0.0, 1.0)
    if gain not in (_FIXED, _AFFINE) or bias not in _BIASES or g[1] != 0.0:
        return None
    limits = {"control": tuple(control.tolist())}
    if g[2] != 0.0:
        plain = g[2] < 0.0 and g[0] == 0.0 and not b.any()
        return {"gain": 1.0, "kind": "damper", "damping": 0.0 - float(g[2])} | limits if plain else None
    if g[0] == 0.0 or b[1] > 0.0 or b[2] > 0.0:
        return None
    if not b[1] and not b[2]:
        return {"gain": float(g[0]), "kind": "motor"} | limits if not b[0] else None
    stiffness, damping = 0.0 - float(b[1]), 0.0 - float(b[2])
    factor, offset = float(g[0]) / (stiffness or damping), float(b[0]) / (stiffness or damping)
    limits = {"control": tuple(np.sort(factor * control + offset).tolist())}
    law = {"gain": 1.0, "kind": "position" if stiffness else "velocity", "stiffness": stiffness, "damping": damping}
    if factor != 1.0 or offset:
        law["scale"] = f"{factor:.6g} × ctrl" + (f" {offset:+.6g}" if offset else "")
    return law | limits

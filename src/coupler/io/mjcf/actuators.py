"""Actuators of a compiled model in MJCF: motors, servos and dampers, at joints, sums of joints, and sites.

MuJoCo's force is gain · ctrl + bias, along a length that is the gear times that of the transmission. A gain without
bias is a motor, whose gear has the gain, so that its control is ctrl. A bias against the length makes a position servo,
one against the velocity alone a velocity servo, and a gain by the velocity a damper.

A site pushes its body with a wrench along axes of its own. If a single joint lies between the body and the ground, as
with a drone and its propellers, that is the same force on the joint in every pose. Otherwise the gear would depend on
the pose, as it does for slider-cranks and for tendons that run over sites; these are left out.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from coupler.io.mjcf.attributes import NO_LIMIT
from coupler.io.mjcf.compilation import Compiled
from coupler.io.mjcf.files import Files
from coupler.io.mjcf.tree import BALL, FREE, SLIDE, Tree, gears_of, pose, works
from coupler.io.taken_names import TakenNames
from coupler.model import RobotBuilder
from coupler.model.wording import counted

_JOINT, _IN_PARENT, _CRANK, _TENDON, _SITE, _BODY = range(6)  # MuJoCo's transmissions
_LEFT_OUT = {  # the others, for one and for several
    _CRANK: (
        "actuator at a slider-crank (model the rod as a body, and close it with <connect>)",
        "actuators at slider-cranks (model the rods as bodies, and close them with <connect>)",
    ),
    _TENDON: ("actuator at a tendon that runs over sites", "actuators at tendons that run over sites"),
    _SITE: (
        "actuator at a site that several joints move, or relative to another site",
        "actuators at sites that several joints move, or relative to other sites",
    ),
    _BODY: ("adhesion actuator", "adhesion actuators"),
}
_FIXED, _AFFINE = 0, 1  # gains
_BIASES = (0, 1)  # none, and affine
_DIRECT, _FILTERS, _MUSCLE = 0, (2, 3), 4  # dynamics: none, those that only delay, and muscles


class _LeftOut(Exception):
    """An actuator that is not modelled, with phrases for one such actuator and for several."""


def driven_tendons(model: Compiled) -> set[int]:
    """The tendons that actuators pull and that are sums of joints."""
    tendons = model.actuator_trnid[model.actuator_trntype == _TENDON, 0].tolist()
    return {tendon for tendon in tendons if model.joint_sum(tendon) is not None}


def add_actuators(model: Compiled, files: Files, tree: Tree, builder: RobotBuilder) -> list[str]:
    """Adds the actuators; returns a description of what is left out of them."""
    names, left_out, scaled = model.names["actuator"], Counter[tuple[str, str]](), list[str]()
    acted, served = Counter[str](), set[str]()  # the joints, and those of which a sum of forces is not cut short
    taken = TakenNames(name for name in names if name)
    for i, name in enumerate(names):
        try:
            gears = _gears(model, tree, i)
        except _LeftOut as why:
            left_out[why.args[0], why.args[1]] += 1
            continue
        law, lost = _law(model, tree, i)
        if lost is not None:
            left_out[lost] += 1
        gain = law.pop("gain")
        if scale := law.pop("scale", None):
            scaled.append(f"{name or i + 1!r} = {scale}")
        gears = {joint: np.asarray(gear) * gain if np.ndim(gear) else gear * gain for joint, gear in gears.items()}
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


def _gears(model: Compiled, tree: Tree, i: int) -> dict[str, Any]:
    """For each joint, how far the actuator moves per unit of the joint's position.

    Raises:
        _LeftOut: for actuators that are switched off, and transmissions that are no sums of joint positions.
    """
    if not works(model, tree.off)[i]:
        raise _LeftOut("actuator that is switched off", "actuators that are switched off")
    kind, target, gear = int(model.actuator_trntype[i]), int(model.actuator_trnid[i, 0]), gears_of(model)[i]
    fixed = {*tree.locked, *tree.hung}
    if model.actuator_ctrlnum[i] != 1:
        raise _LeftOut("actuator with several controls", "actuators with several controls")
    if kind == _TENDON and (terms := model.joint_sum(target)) is not None:
        ratios: dict[str, Any] = {}
        for joint, factor in terms:
            if joint not in fixed:
                name = tree.names.joints[joint]
                ratios[name] = ratios.get(name, 0.0) + float(gear[0] * factor)
        ratios = {name: ratio for name, ratio in ratios.items() if ratio}
        if not ratios:
            raise _LeftOut("actuator of fixed joints", "actuators of fixed joints")
        return ratios
    if kind == _SITE and model.actuator_trnid[i, 1] < 0 and (joint := _only_joint(model, tree, target)) is not None:
        return _nonzero({tree.names.joints[joint]: _site_gear(model, joint, target, gear)})
    if kind not in (_JOINT, _IN_PARENT):
        raise _LeftOut(*_LEFT_OUT.get(kind, ("actuator of an unknown kind", "actuators of unknown kinds")))
    if target in fixed:
        raise _LeftOut("actuator of fixed joints", "actuators of fixed joints")
    name, type_ = tree.names.joints[target], int(model.jnt_type[target])
    if type_ in (FREE, BALL) and (kind == _IN_PARENT or (type_ == FREE and gear[:3].any())):
        raise _LeftOut(
            "actuator of a free or ball joint, along axes that do not turn with its body",
            "actuators of free or ball joints, along axes that do not turn with their bodies",
        )
    if type_ == FREE:
        return _nonzero({name: np.concatenate([gear[3:], np.zeros(3)])})
    return _nonzero({name: gear[:3] if type_ == BALL else float(gear[0])})


def _nonzero(gears: dict[str, Any]) -> dict[str, Any]:
    if not np.any(next(iter(gears.values()))):
        raise _LeftOut("actuator whose gear is zero", "actuators whose gears are zero")
    return gears


def _only_joint(model: Compiled, tree: Tree, site: int) -> int | None:
    """The joint between a site's body and the ground, if there is exactly one."""
    joints, body = [], int(model.site_bodyid[site])
    while body:
        joints += [j for j in model.joints_of(body) if j not in tree.locked]
        body = int(model.body_parentid[body])
    return joints[0] if len(joints) == 1 and joints[0] not in tree.hung else None


def _site_gear(model: Compiled, joint: int, site: int, gear: np.ndarray) -> Any:
    """How far a site moves along a gear (linear first, in the site's axes) per unit of a joint's velocity."""
    body, at = int(model.site_bodyid[site]), pose(model.site_pos[site], model.site_quat[site])
    while body != model.jnt_bodyid[joint]:
        at = at @ pose(model.body_pos[body], model.body_quat[body])
        body = int(model.body_parentid[body])
    push, turn = at.E.T @ gear[:3], at.E.T @ gear[3:]  # along the axes of the joint's body
    kind, axis = int(model.jnt_type[joint]), model.jnt_axis[joint]
    if kind == FREE:
        return np.concatenate([turn + np.cross(at.r, push), push])
    if kind == SLIDE:
        return float(axis @ push)
    moment = turn + np.cross(at.r - model.jnt_pos[joint], push)
    return moment if kind == BALL else float(axis @ moment)


def _law(model: Compiled, tree: Tree, i: int) -> tuple[dict[str, Any], tuple[str, str] | None]:
    """An actuator's control law, as arguments of `RobotBuilder.actuator`, and a description of what is lost of it."""
    dynamics, lost = int(model.actuator_dyntype[i]), None
    adr = int(model.actuator_ctrladr[i])
    clamped = bool(model.actuator_ctrllimited[adr]) and not tree.off("CLAMPCTRL")
    control = _range(model.actuator_ctrlrange[adr] if clamped else np.array([-np.inf, np.inf]))
    effort = _range(model.actuator_forcerange[i] if model.actuator_forcelimited[i] else np.array([-np.inf, np.inf]))
    if dynamics in _FILTERS:
        lost = "delay of an actuator", "delays of actuators"
    transmission = int(model.actuator_trntype[i])
    law = None
    if dynamics == _DIRECT or dynamics in _FILTERS:
        law = _affine_law(model, i, control, still=transmission == _SITE)
    ball = transmission in (_JOINT, _IN_PARENT) and model.jnt_type[model.actuator_trnid[i, 0]] == BALL
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

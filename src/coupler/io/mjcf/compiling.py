"""Compiling a file with MuJoCo, in a process of its own: a job for `coupler.children`; it imports nothing of ours.

MuJoCo's parser can hang or crash on a file, and after it has refused one. What comes back are names and numbers.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any

_OLDEST = 4  # versions before compute axes of inertia only to 1e-9
# Of the compiled model: what is read elsewhere by these names.
_SIZES = ("nbody", "njnt", "nsite", "neq", "ngeom", "ntendon", "nkey", "nexclude", "nflex", "nplugin")
_NAMES = ("body", "jnt", "site", "equality", "geom", "tendon", "key", "mesh", "actuator")
_ARRAYS = (
    *("body_gravcomp", "body_inertia", "body_ipos", "body_iquat", "body_jntadr", "body_jntnum", "body_mass"),
    *("body_mocapid", "body_parentid", "body_pos", "body_quat", "qpos0", "qpos_spring"),
    *("jnt_actfrclimited", "jnt_actfrcrange", "jnt_axis", "jnt_bodyid", "jnt_dofadr", "jnt_limited"),
    *(
        "jnt_margin",
        "jnt_pos",
        "jnt_qposadr",
        "jnt_range",
        "jnt_springyield",
        "jnt_stiffness",
        "jnt_stiffnesspoly",
        "jnt_type",
    ),
    *("dof_armature", "dof_damping", "dof_dampingpoly", "dof_frictionloss", "dof_jntid"),
    *("eq_active0", "eq_data", "eq_obj1id", "eq_obj2id", "eq_objtype", "eq_type"),
    *("site_bodyid", "site_pos", "site_quat", "mesh_pos", "mesh_quat", "mat_rgba"),
    *("exclude_signature", "pair_adhesion", "pair_dim", "pair_friction", "pair_geom1", "pair_geom2", "pair_margin"),
    "hfield_adr",
    *("hfield_data", "hfield_ncol", "hfield_nrow", "hfield_size"),
    *("mesh_vert", "mesh_vertadr", "mesh_vertnum"),
    *("geom_adhesion", "geom_bodyid", "geom_conaffinity", "geom_contype", "geom_dataid", "geom_friction"),
    *(
        "geom_condim",
        "geom_group",
        "geom_margin",
        "geom_matid",
        "geom_pos",
        "geom_priority",
        "geom_quat",
        "geom_rgba",
        "geom_size",
    ),
    *("geom_surfacevel", "geom_type"),
    *(
        "tendon_actfrclimited",
        "tendon_adr",
        "tendon_armature",
        "tendon_damping",
        "tendon_dampingpoly",
        "tendon_frictionloss",
    ),
    *("tendon_lengthspring", "tendon_limited", "tendon_num", "tendon_springyield", "tendon_stiffness"),
    *("tendon_stiffnesspoly", "wrap_objid", "wrap_prm", "wrap_type", "key_act", "key_ctrl", "key_qpos", "key_qvel"),
    *("actuator_armature", "actuator_biasprm", "actuator_biastype", "actuator_ctrladr", "actuator_ctrllimited"),
    *("actuator_ctrlnum", "actuator_ctrlrange", "actuator_damping", "actuator_dampingpoly", "actuator_dyntype"),
    *("actuator_forcelimited", "actuator_forcerange", "actuator_gainprm", "actuator_gaintype", "actuator_gear"),
    *("actuator_cranklength", "actuator_group"),
    *("actuator_outadr", "actuator_trnid", "actuator_trntype"),
)


def prepare() -> None:
    """Imports MuJoCo.

    Raises:
        ImportError: if it is not installed, or too old.
    """
    import mujoco  # type: ignore[import-not-found]

    if int(mujoco.__version__.split(".")[0]) < _OLDEST:
        raise ImportError(f"MuJoCo {_OLDEST} or newer, not {mujoco.__version__}")


def run(request: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Compiles a file with MuJoCo.

    Args:
        request: the `file`, the `places` in which its meshes may be, whether to `strip` folders off their names, and
            how many `bodies` there may be.

    Returns:
        The arrays of the compiled model, and before them what else there is to know: `refused`, why MuJoCo rejects the
        file; `hollow`, a body whose mass comes from a mesh that is missing; `warnings`, those of MuJoCo; `lost`,
        `fields` and `sensors`, how many shapes without their mesh, height fields and sensors are left out.
    """
    import mujoco as module  # type: ignore[import-not-found]

    mujoco: Any = module
    header: dict[str, Any] = {"refused": "", "hollow": None, "crowd": 0}
    with _caught_warnings(mujoco) as messages:
        header["warnings"] = messages
        try:
            spec = mujoco.MjSpec.from_file(request["file"])
        except Exception as error:
            return header | {"refused": str(error)}, {}
        header["crowd"] = len(spec.bodies)
        if header["crowd"] > request["bodies"]:
            return header, {}
        header |= _pruned(mujoco, spec, lambda asset: locate(asset.file, asset.compiler.meshdir, request))
        if header["hollow"]:
            return header, {}
        spec.compiler.usethread = False  # a warning of another thread would wait for this one for ever
        try:
            model = spec.compile()
        except Exception as error:
            return header | {"refused": str(error)}, {}
    return header | _described(mujoco, model, spec), _arrays(model, spec)


def locate(file: str, folder: str, request: dict[str, Any]) -> str | None:
    """The path of a mesh, given its file and folder as MuJoCo has them; None if there is no such file."""
    file, folder = file.replace("\\", "/"), folder.replace("\\", "/")
    names = (file, PurePosixPath(file).name) if request["strip"] else (file,)
    paths = (os.path.join(place, folder, name) for place in request["places"] for name in names)
    return next((os.path.realpath(path) for path in paths if os.path.isfile(path)), None)


@contextmanager
def _caught_warnings(mujoco: Any) -> Iterator[list[str]]:
    """Collects MuJoCo's warnings, some of which it would otherwise print."""
    messages: list[str] = []
    mujoco.set_mju_user_warning(messages.append)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield messages
    messages += [str(warning.message) for warning in caught]


def _pruned(mujoco: Any, spec: Any, locates: Any) -> dict[str, Any]:
    """Removes what coupler does not use, and shapes whose files are missing; returns what the user should be told."""
    missing = {m.name: m for m in spec.meshes if m.file and not locates(m)}
    field, unknown = mujoco.mjtGeom.mjGEOM_HFIELD, {h.name: h for h in spec.hfields if h.file and not locates(h)}
    fields = [geom for geom in spec.geoms if geom.type == field and geom.hfieldname in unknown]
    lost = [geom for geom in spec.geoms if geom.type != field and geom.meshname in missing]
    for geom in lost:
        if _weighs(mujoco, geom):
            mesh = missing[geom.meshname]
            return {"hollow": {"body": geom.parent.name, "mesh": mesh.name, "file": mesh.file}}
    removed = {geom.name for geom in (*lost, *fields) if geom.name}
    pairs = [pair for pair in spec.pairs if pair.geomname1 in removed or pair.geomname2 in removed]
    counts = {"lost": len(lost), "fields": len(fields), "sensors": len(spec.sensors)}
    unused = [*spec.sensors, *spec.skins, *spec.textures, *spec.tuples]
    for site in spec.sites:
        if site.meshname:  # MuJoCo would move the site to the centre of its mesh
            site.meshname, site.type = "", mujoco.mjtGeom.mjGEOM_SPHERE
    for material in spec.materials:
        material.textures = [""] * len(list(material.textures))
    for element in (*pairs, *lost, *fields, *unused, *missing.values(), *unknown.values()):
        spec.delete(element)
    return counts


def _weighs(mujoco: Any, geom: Any) -> bool:
    """Whether a geom contributes to the mass of its body."""
    body, rule, (first, last) = geom.parent, geom.compiler, geom.compiler.inertiagrouprange
    if body.name == "world" or not first <= geom.group <= last:
        return False
    given = body.explicitinertial and rule.inertiafromgeom != mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    light = geom.mass == 0.0 or (geom.mass != geom.mass and geom.density == 0.0)  # NaN where it is not given
    return not given and not light


def _described(mujoco: Any, model: Any, spec: Any) -> dict[str, Any]:
    """Sizes, names and options of a compiled model, and the files of its meshes."""
    flags = {name.removeprefix("mjDSBL_"): int(bit) for name, bit in mujoco.mjtDisableBit.__members__.items()}
    overrides = model.opt.enableflags & int(mujoco.mjtEnableBit.mjENBL_OVERRIDE)
    meshes = _meshes(model, spec)
    return {
        "sizes": {name: int(getattr(model, name)) for name in _SIZES},
        "names": {kind: _names(model, kind) for kind in _NAMES},
        "disabled": [name for name, bit in flags.items() if model.opt.disableflags & bit],
        "groups_off": int(model.opt.disableactuator),
        "overrides": bool(overrides),
        "fluid": bool(model.opt.density or model.opt.viscosity),
        "mesh_files": [(mesh.file, mesh.compiler.meshdir) for mesh in meshes],
    }


def _names(model: Any, kind: str) -> list[str]:
    start = {"equality": "eq"}.get(kind, kind)
    text = model.names
    return [_until_zero(text, int(adr)) for adr in getattr(model, f"name_{start}adr")]


def _until_zero(text: bytes, start: int) -> str:
    return text[start : text.index(b"\0", start)].decode("utf-8", "replace")


def _meshes(model: Any, spec: Any) -> list[Any]:
    return [spec.mesh(name) for name in _names(model, "mesh")]


def _arrays(model: Any, spec: Any) -> dict[str, Any]:
    import numpy as np

    meshes = _meshes(model, spec)
    arrays = {name: np.array(getattr(model, name)) for name in _ARRAYS}
    arrays["gravity"] = np.array(model.opt.gravity)
    arrays |= {
        f"mesh_{name}": np.array([getattr(mesh, name) for mesh in meshes], dtype=float).reshape(len(meshes), width)
        for name, width in (("scale", 3), ("refpos", 3), ("refquat", 4))
    }
    return arrays

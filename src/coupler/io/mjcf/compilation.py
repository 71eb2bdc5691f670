"""MuJoCo's own reading of a file, with its warnings caught and without what no file is there for."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from coupler.io.mjcf.files import Files
from coupler.model import ModelError
from coupler.model.words import counted

__all__ = ["compiled"]


def compiled(files: Files) -> tuple[Any, Any, list[str], list[str]]:
    """The compiled model, what it was compiled from, what of the file is left out, and what MuJoCo warns of.

    Raises:
        ModelError: if MuJoCo is not installed, refuses the file, or needs a mesh that is not there.
    """
    mujoco = imported()
    with _heard(mujoco) as said:
        try:
            spec = mujoco.MjSpec.from_file(str(files.root.file))
        except Exception as error:
            raise _refused(files, error) from None
        undefined = files.undefined() if any("NaN" in text for text in said) else None
        if undefined:
            raise undefined.error("it holds a NaN, which is no number")
        untold = _prune(mujoco, spec, files)
        spec.compiler.usethread = False  # warnings of other threads would wait for this one for ever
        try:
            model = spec.compile()
        except Exception as error:
            raise _refused(files, error) from None
    return model, spec, untold, [" ".join(text.split()) for text in said]


def imported() -> Any:
    """The module mujoco."""
    try:
        import mujoco  # type: ignore[import-not-found]
    except ImportError:
        raise ModelError("files in MJCF are read by MuJoCo, which is missing: pip install 'coupler[mjcf]'") from None
    if int(mujoco.__version__.split(".")[0]) < 4:  # which finds axes of inertia to 1e-9 only
        raise ModelError(
            f"files in MJCF are read by MuJoCo 4 or newer, not {mujoco.__version__}: pip install -U 'coupler[mjcf]'"
        )
    return mujoco


@contextmanager
def _heard(mujoco: Any) -> Iterator[list[str]]:
    """Collects MuJoCo's warnings, some of which it would print, and write into a file in the working folder."""
    before, said = mujoco.get_mju_user_warning(), list[str]()
    mujoco.set_mju_user_warning(said.append)
    try:
        with warnings.catch_warnings(record=True) as others:
            warnings.simplefilter("always")
            yield said
        said += [str(warning.message) for warning in others]
    finally:
        mujoco.set_mju_user_warning(before)


_AT = re.compile(r"Element (?:'(?P<tag>[^']*)'|name '(?P<name>[^']*)', id \d+)(?:, line (?P<line>\d+))?$")


def _refused(files: Files, error: Exception) -> ModelError:
    message = re.sub(r"^(XML )?(Error: )+", "", " ".join(str(error).split()))
    at = _AT.search(message)
    where = files.accused(at["tag"] or "", at["name"] or "", int(at["line"] or 0)) if at else files.root
    told = message if where is files.root or not at else message[: at.start()].rstrip()
    return where.error(f"MuJoCo refuses it: {told}")


def _prune(mujoco: Any, spec: Any, files: Files) -> list[str]:
    """Takes out what has no meaning here, and shapes whose files are not there; what of it a user should know."""
    missing = {m.name: m for m in spec.meshes if m.file and not files.locate(m.file, m.compiler.meshdir)}
    field = mujoco.mjtGeom.mjGEOM_HFIELD
    fields = [geom for geom in spec.geoms if geom.type == field]
    lost = [geom for geom in spec.geoms if geom.type != field and geom.meshname in missing]
    for geom in lost:
        if _weighs(mujoco, geom):
            body, mesh = geom.parent.name, missing[geom.meshname]
            where = files.where("body", body)
            raise where.error(
                f"the mass of body {body!r} comes from mesh {mesh.name!r}, whose file {mesh.file!r} is not there: add "
                "the file, or give the body an <inertial>"
            )
    untold = [f"{counted(len(lost), 'shape')} whose meshes are not there"] if lost else []
    untold += [counted(len(fields), "<hfield> of a shape", "<hfield> of shapes")] if fields else []
    untold += [counted(len(spec.sensors), "sensor")] if spec.sensors else []
    gone = {geom.name for geom in (*lost, *fields) if geom.name}
    pairs = [pair for pair in spec.pairs if pair.geomname1 in gone or pair.geomname2 in gone]
    unused = [*spec.sensors, *spec.skins, *spec.textures, *spec.tuples]
    for site in spec.sites:
        if site.meshname:  # MuJoCo would move the site to the centre of its mesh
            site.meshname, site.type = "", mujoco.mjtGeom.mjGEOM_SPHERE
    for material in spec.materials:
        material.textures = [""] * len(list(material.textures))
    for element in (*pairs, *lost, *fields, *unused, *missing.values(), *spec.hfields):
        spec.delete(element)
    return untold


def _weighs(mujoco: Any, geom: Any) -> bool:
    """Whether the mass of a geom's body comes from the geom, among others."""
    body, rule, (first, last) = geom.parent, geom.compiler, geom.compiler.inertiagrouprange
    if body.name == "world" or not first <= geom.group <= last:
        return False
    given = body.explicitinertial and rule.inertiafromgeom != mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    light = geom.mass == 0.0 or (np.isnan(geom.mass) and geom.density == 0.0)
    return not given and not light

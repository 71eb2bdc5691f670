"""Compiling a file with MuJoCo, with its warnings caught and without shapes whose files are missing."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from coupler.io.mjcf.files import Files
from coupler.model import ModelError
from coupler.model.wording import counted

__all__ = ["compile_model", "import_mujoco"]


def compile_model(files: Files) -> tuple[Any, Any, list[str], list[str]]:
    """Compiles a model.

    Returns:
        The model, MuJoCo's specification of it, descriptions of what is left out, and MuJoCo's warnings.

    Raises:
        ModelError: if MuJoCo is not installed, rejects the file, or needs a mesh that is missing.
    """
    mujoco = import_mujoco()
    with _caught_warnings(mujoco) as messages:
        try:
            spec = mujoco.MjSpec.from_file(str(files.root.file))
        except Exception as error:
            raise _refused(files, error) from None
        undefined = files.undefined() if any("NaN" in text for text in messages) else None
        if undefined:
            raise undefined.error("it contains a NaN")
        left_out = _prune(mujoco, spec, files)
        spec.compiler.usethread = False  # a warning of another thread would wait for this one for ever
        try:
            model = spec.compile()
        except Exception as error:
            raise _refused(files, error) from None
    return model, spec, left_out, [" ".join(text.split()) for text in messages]


def import_mujoco() -> Any:
    """The module `mujoco`.

    Raises:
        ModelError: if it is not installed, or too old.
    """
    try:
        import mujoco  # type: ignore[import-not-found]
    except ImportError:
        raise ModelError("reading MJCF needs MuJoCo: pip install 'coupler[mjcf]'") from None
    if int(mujoco.__version__.split(".")[0]) < 4:  # older ones compute axes of inertia only to 1e-9
        raise ModelError(
            f"reading MJCF needs MuJoCo 4 or newer, not {mujoco.__version__}: pip install -U 'coupler[mjcf]'"
        )
    return mujoco


@contextmanager
def _caught_warnings(mujoco: Any) -> Iterator[list[str]]:
    """Collects MuJoCo's warnings, some of which it would otherwise print, and write to a file in the working folder."""
    original, messages = mujoco.get_mju_user_warning(), list[str]()
    mujoco.set_mju_user_warning(messages.append)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield messages
        messages += [str(warning.message) for warning in caught]
    finally:
        mujoco.set_mju_user_warning(original)


_AT = re.compile(r"Element (?:'(?P<tag>[^']*)'|name '(?P<name>[^']*)', id \d+)(?:, line (?P<line>\d+))?$")


def _refused(files: Files, error: Exception) -> ModelError:
    message = re.sub(r"^(XML )?(Error: )+", "", " ".join(str(error).split()))
    at = _AT.search(message)
    where = files.blamed_element(at["tag"] or "", at["name"] or "", int(at["line"] or 0)) if at else files.root
    text = message if where is files.root or not at else message[: at.start()].rstrip()
    return where.error(f"MuJoCo rejects it: {text}")


def _prune(mujoco: Any, spec: Any, files: Files) -> list[str]:
    """Removes what has no meaning here, and shapes whose files are missing; returns what a user should know of it."""
    missing = {m.name: m for m in spec.meshes if m.file and not files.locate(m.file, m.compiler.meshdir)}
    field = mujoco.mjtGeom.mjGEOM_HFIELD
    fields = [geom for geom in spec.geoms if geom.type == field]
    lost = [geom for geom in spec.geoms if geom.type != field and geom.meshname in missing]
    for geom in lost:
        if _weighs(mujoco, geom):
            body, mesh = geom.parent.name, missing[geom.meshname]
            where = files.where("body", body)
            raise where.error(
                f"the mass of body {body!r} comes from mesh {mesh.name!r}, whose file {mesh.file!r} is missing: add "
                "the file, or give the body an <inertial>"
            )
    left_out = [f"{counted(len(lost), 'shape')} whose meshes are missing"] if lost else []
    left_out += [counted(len(fields), "<hfield> of a shape", "<hfield> of shapes")] if fields else []
    left_out += [counted(len(spec.sensors), "sensor")] if spec.sensors else []
    removed = {geom.name for geom in (*lost, *fields) if geom.name}
    pairs = [pair for pair in spec.pairs if pair.geomname1 in removed or pair.geomname2 in removed]
    unused = [*spec.sensors, *spec.skins, *spec.textures, *spec.tuples]
    for site in spec.sites:
        if site.meshname:  # MuJoCo would move the site to the centre of its mesh
            site.meshname, site.type = "", mujoco.mjtGeom.mjGEOM_SPHERE
    for material in spec.materials:
        material.textures = [""] * len(list(material.textures))
    for element in (*pairs, *lost, *fields, *unused, *missing.values(), *spec.hfields):
        spec.delete(element)
    return left_out


def _weighs(mujoco: Any, geom: Any) -> bool:
    """Whether a geom contributes to the mass of its body."""
    body, rule, (first, last) = geom.parent, geom.compiler, geom.compiler.inertiagrouprange
    if body.name == "world" or not first <= geom.group <= last:
        return False
    given = body.explicitinertial and rule.inertiafromgeom != mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    light = geom.mass == 0.0 or (np.isnan(geom.mass) and geom.density == 0.0)
    return not given and not light

"""A model as MuJoCo compiles it, in a process of its own that is kept for the next file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from coupler.children import Child, ChildError
from coupler.io.limits import BODIES, MEMORY, SECONDS
from coupler.io.mjcf.compiling import locate
from coupler.io.mjcf.files import Files
from coupler.model import ModelError
from coupler.model.wording import clipped, counted

_WRAP_JOINT = 1  # MuJoCo's type of a joint that a tendon runs over
_child = Child(Path(__file__).with_name("compiling.py"), SECONDS, MEMORY)


class Compiled:
    """A compiled model: its arrays and sizes are attributes, by MuJoCo's names.

    Attributes:
        names: lists of names by kind: body, jnt, site, equality, geom, tendon, key, mesh, actuator.
        disabled: the parts that flags switch off, by MuJoCo's words.
        groups_off: the groups of actuators that are switched off, as bits.
        overrides: whether the file's options override the properties of its contacts.
        fluid: whether bodies move in a fluid.
        mesh_paths: the file of each mesh, or None.
        left_out: descriptions of what is left out.
        sensors: number of sensors that are left out; their sites stay.
        warnings: MuJoCo's warnings.
    """

    def __init__(self, header: dict[str, Any], arrays: dict[str, np.ndarray], files: Files) -> None:
        self._numbers: dict[str, Any] = header["sizes"] | arrays
        self.names: dict[str, list[str]] = header["names"]
        self.disabled, self.groups_off = frozenset(header["disabled"]), int(header["groups_off"])
        self.overrides, self.fluid = bool(header["overrides"]), bool(header["fluid"])
        paths = (locate(file, folder, files.places) if file else None for file, folder in header["mesh_files"])
        self.mesh_paths = [None if path is None else Path(path) for path in paths]
        lost, fields, self.sensors = (int(header[name]) for name in ("lost", "fields", "sensors"))
        self.left_out = [f"{counted(lost, 'shape')} whose meshes are missing"] if lost else []
        self.left_out += [f"{counted(fields, 'shape')} whose <hfield> is missing"] if fields else []
        self.warnings = [" ".join(str(text).split()) for text in header["warnings"]]

    def joints_of(self, body: int) -> range:
        """The numbers of the joints between a body and its parent."""
        first = int(self.body_jntadr[body])
        return range(first, first + int(self.body_jntnum[body]))

    def joint_sum(self, tendon: int) -> list[tuple[int, float]] | None:
        """The joints whose positions a tendon adds up, with their factors; None if it runs over something else."""
        path = slice(self.tendon_adr[tendon], self.tendon_adr[tendon] + self.tendon_num[tendon])
        if (self.wrap_type[path] != _WRAP_JOINT).any():
            return None
        return list(zip(self.wrap_objid[path].tolist(), self.wrap_prm[path].tolist(), strict=True))

    def __getattr__(self, name: str) -> Any:
        try:
            return self._numbers[name]
        except KeyError:
            raise AttributeError(f"the compiled model has no {name!r}") from None


def compile_model(files: Files) -> Compiled:
    """Compiles a model.

    Raises:
        ModelError: if MuJoCo is not installed, rejects the file, needs a mesh that is missing, takes too long or
            crashes.
    """
    try:
        request = {"file": str(files.root.file.absolute()), "bodies": BODIES} | files.places
        header, arrays = _child.ask(request, files.allowed)
        return _checked(files, header, arrays)
    except ChildError as error:
        raise _failed(files, error) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise (
            error if isinstance(error, ModelError) else files.root.error(f"MuJoCo's answer cannot be used: {error}")
        ) from None


def _checked(files: Files, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Compiled:
    undefined = files.undefined() if any("NaN" in text for text in header["warnings"]) else None
    if undefined:
        raise undefined.error("it contains a NaN")
    if header["refused"]:
        raise _refused(files, header["refused"])
    if header["crowd"] > BODIES:
        raise files.root.error(f"it has {header['crowd']} bodies; a file may have {BODIES}")
    if header["hollow"]:
        body, mesh, file = (header["hollow"][name] for name in ("body", "mesh", "file"))
        raise files.where("body", body).error(
            f"the mass of body {body!r} comes from mesh {mesh!r}, whose file {file!r} is missing: add the file, or "
            "give the body an <inertial>"
        )
    return Compiled(header, arrays, files)


def _failed(files: Files, error: ChildError) -> ModelError:
    if error.kind == "ModuleNotFoundError":
        return ModelError("reading MJCF needs MuJoCo: pip install 'coupler[mjcf]'")
    if error.kind == "ImportError":
        return ModelError(f"reading MJCF needs {error}: pip install -U 'coupler[mjcf]'")
    return files.root.error(f"MuJoCo cannot read it: {clipped(error, 1000, quote=False)}")


_AT = re.compile(r"Element (?:'(?P<tag>[^']*)'|name '(?P<name>[^']*)', id \d+)(?:, line (?P<line>\d+))?$")


def _refused(files: Files, why: str) -> ModelError:
    message = re.sub(r"^(XML )?(Error: )+", "", " ".join(why.split()))
    at = _AT.search(message)
    where = files.blamed_element(at["tag"] or "", at["name"] or "", int(at["line"] or 0)) if at else files.root
    if at and (where is not files.root or not any(at.groups())):  # it is named before the message, or has no name
        message = message[: at.start()].rstrip()
    return where.error(f"MuJoCo rejects it: {clipped(message, 1000, quote=False)}")

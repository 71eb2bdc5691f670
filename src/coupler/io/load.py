"""Loading a robot from a file of any format."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from coupler.forks import imports
from coupler.io.limits import JOINED
from coupler.io.precision import precision_of
from coupler.io.reading import Closures, Options
from coupler.io.tables import SUFFIXES
from coupler.io.xml import Element, parse_file
from coupler.model import ClosureChoice, ModelError, Robot, RobotBuilder
from coupler.model.errors import warn
from coupler.model.wording import clipped


def load(
    path: str | Path,
    *,
    closures: Closures = None,
    floating: bool = False,
    packages: Mapping[str, str | Path] | None = None,
    gravity: Any = None,
    lock_idle: bool = False,
    arguments: Mapping[str, str] | None = None,
    xacro: bool = False,
    precision: float | None = None,
    massless: str = "refuse",
    closure: ClosureChoice = "auto",
) -> Robot:
    """The robot that a file describes: URDF, URDF+, xacro, MJCF or SDFormat; or tables in YAML, JSON or CSV.

    The file may be a stranger's: see docs/threat_model.md for what loading it can do, and what not.

    One `ModelWarning` lists what the file describes but coupler does not model, and what is suspicious about it;
    `robot.warnings` keeps it.

    Args:
        path: the path of the file.
        closures: loops of a URDF that are described elsewhere: a YAML file, or pairs of frames, each with "3d" (point
            to point, the default) or "6d" (welded) as an optional third entry. By default loops are taken from a YAML
            file of the same name, or submechanisms.yml, beside the robot's file, and from frames named closing_NAME_1
            and closing_NAME_2; False for none.
        floating: whether the root is free to move in space, by a joint "floating_base". A model of SDFormat is, unless
            a joint connects it to the world.
        packages: folders by name, for `package://NAME/...`, `model://NAME/...` and `$(find NAME)`; files in them may
            be read. Files of submechanisms are looked for in them, too, where they are not beside the YAML file.
        gravity: 3, m/s²; by default that of the file, or 9.81 downwards along z if it has none.
        lock_idle: whether to lock idle freedoms, such as the spin of a rod between two ball joints.
        arguments: arguments of a xacro file, by name.
        xacro: whether to expand xacro's macros. They are programs of the file's author: ask for it only if you trust
            the author. They run in a process of their own, which may read the file's folder and `packages`.
        precision: by how much lengths (m), angles (rad) and directions are rounded; by default what the file's digits
            say, and 0 for tables. Rows of loops that would follow from others, if the numbers were exact, are dropped
            with a warning. 0 takes every number as exact.
        massless: what to do with joints of a URDF behind which there is no mass, and which therefore nothing resists:
            "refuse" the robot, or "lock" them.
        closure: how loops are closed: "analytical" where there is a closed form, "numerical", or "auto", analytical
            where the closed form has no dead points; for all, or by name. See `Robot.with_closure`.

    Raises:
        ModelError: for a file that cannot be loaded; it names file, line and element, and says what to do.
    """
    file = _file(path)
    folders = {name: Path(folder) for name, folder in _named("packages", packages, str | Path).items()}
    options = Options(
        closures, floating, folders, gravity, lock_idle, _named("arguments", arguments, str), xacro, massless
    )
    if massless not in ("refuse", "lock"):
        raise ModelError(f"massless must be 'refuse' or 'lock', got {massless!r}")
    if file.suffix.lower() in SUFFIXES and not xacro:
        roots, elements, builder = [], {}, _read_tables(file, options)
        precision = 0.0 if precision is None else precision
    else:
        roots, builder, elements = _read(file, options)
        precision = precision_of(*roots) if precision is None else precision
    lockable = bool(roots) and roots[0].tag == "robot" and massless != "lock"
    build = partial(builder.build, lock_idle=lock_idle, largest=JOINED, precision=precision, closure=closure)
    robot = _build(build, file, elements, lockable)
    if robot.warnings:
        texts = [clipped(text, 2000, quote=False) for text in robot.warnings]
        text = f" {texts[0]}" if len(texts) == 1 else "".join(f"\n- {text}" for text in texts)
        warn(f"{file}:{text}")
    return robot


def _file(path: Any) -> Path:
    if not isinstance(path, str | Path) or not str(path):
        raise ModelError(f"a robot is loaded from the path of a file, got {clipped(path)}")
    file, name = Path(path), clipped(path, 1000, quote=False)
    if os.path.isdir(file):
        raise ModelError(f"{name}: it is a folder; name the robot's file in it")
    if not os.path.exists(file):  # which, unlike the method of Path, takes names that are too long to be
        from coupler.robots import names

        hint = f"; for the bundled robot, use coupler.robots.load({str(path)!r})" if str(path) in names() else ""
        raise ModelError(f"{name}: there is no such file{hint}")
    return file


def _named(what: str, given: Any, kind: Any) -> dict[str, Any]:
    """A dictionary that the user gave, after checking that its keys are names."""
    valid = isinstance(given, Mapping) and all(isinstance(k, str) and isinstance(v, kind) for k, v in given.items())
    if given is not None and not valid:
        raise ModelError(
            f"{what} must be a dictionary from names to {'folders' if what == 'packages' else 'strings'}, got {given!r}"
        )
    return dict(given or {})


def _read(file: Path, options: Options) -> tuple[list[Element], RobotBuilder, dict[str, Element]]:
    """Root elements of all files read, the builder of the robot, and the elements that describe its parts, by name."""
    if file.suffix == ".xacro" or options.xacro:
        with imports():
            from coupler.io.urdf.xacro import expand

        root = expand(file, options)
    elif options.arguments:
        raise ModelError(f"{file}: arguments are for xacro files; pass xacro=True if it is one")
    else:
        root = parse_file(file)
    if root.tag == "mujoco":
        return [root], *_read_mjcf(root, options)
    if root.tag == "sdf":
        with imports():
            from coupler.io.sdf.read import read_sdf

        _check_massless(root, options)
        builder, elements, roots = read_sdf(root, options)
        return roots, builder, elements
    if root.tag != "robot":
        raise root.error("a robot's file begins with <robot> (URDF), <mujoco> (MJCF) or <sdf> (SDFormat)")
    with imports():  # late, so that `import coupler` stays quick
        from coupler.io.urdf.building import builder_of
        from coupler.io.urdf.closures import add_closures
        from coupler.io.urdf.lenient import lock_massless
        from coupler.io.urdf.read import read_urdf

    description = read_urdf(root, options)
    add_closures(description, options.closures, options.packages.values())
    if options.massless == "lock":
        lock_massless(description)
    return [root], builder_of(description, options), dict(description.elements())


def _read_tables(file: Path, options: Options) -> RobotBuilder:
    with imports():
        from coupler.io.tables.read import read_robot_tables

    for name, given in (
        ("closures", options.closures not in (None, False)),
        ("floating", options.floating),
        ("packages", options.packages),
        ("arguments", options.arguments),
        ("massless", options.massless != "refuse"),
    ):
        if given:
            raise ModelError(f"{file}: {name} is not for tables, which describe all of a robot themselves")
    return read_robot_tables(file, options.gravity)


def _read_mjcf(root: Element, options: Options) -> tuple[RobotBuilder, dict[str, Element]]:
    with imports():
        from coupler.io.mjcf.read import read_mjcf

    if options.closures not in (None, False):
        raise root.error("MJCF has its loops in <equality>; closures are for URDF")
    _check_massless(root, options)
    builder, left_out = read_mjcf(root, options)
    if left_out:
        builder.warn(f"not modelled, and left out: {', '.join(left_out)}")
    named = {
        e.attributes["name"]: e for e in root.walk() if e.tag in ("body", "joint", "connect", "weld") and e.has("name")
    }
    return builder, named


def _check_massless(root: Element, options: Options) -> None:
    if options.massless != "refuse":
        raise root.error("massless='lock' is for URDF; give the links mass, or their joints an armature")


def _build(build: Callable[[], Robot], file: Path, elements: dict[str, Element], lockable: bool) -> Robot:
    """Builds the robot; an error names the line of the first part that its message names."""
    try:
        return build()
    except ModelError as error:
        if lockable and "nothing resists a motion" in str(error):
            error = ModelError(f"{error}; or load it with massless='lock'")
        for quoted in re.findall(r"'([^']*)'", str(error)):
            if quoted in elements:
                raise elements[quoted].error(str(error)) from None
        raise ModelError(f"{file}: {clipped(error, 2000, quote=False)}") from None

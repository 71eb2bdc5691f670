"""`coupler info`: describes a robot as text or as JSON."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from typing import Any

from coupler.cli.description import described
from coupler.cli.loading import load_robot
from coupler.cli.output import columns, fitted, heading, print_json
from coupler.cli.parser import Verb, add_file, add_json
from coupler.model import Robot
from coupler.model.text import gravity_text, tree_lines
from coupler.model.wording import counted


def _add(parser: ArgumentParser) -> None:
    add_file(parser)
    add_json(parser)


def _run(given: Namespace) -> int:
    robot = load_robot(given)
    about = described(robot)
    if given.json:
        print_json(about)
    else:
        print("\n".join([*_tree(robot), "", columns(_facts(about)), *_closures(about), *_notes(about)]))
    return 0


VERB = Verb("info", "describe a robot: clusters, loops, freedoms", "coupler info tello", _add, _run)


def _tree(robot: Robot) -> Iterator[str]:
    """The lines of the cluster tree; where a long line is wrapped, the branches of the tree continue beside it."""
    first, *lines = tree_lines(robot)
    yield heading(fitted(first))
    for line in lines:
        branch = re.match(r"[ │├└─]*", line)[0]  # type: ignore[index]
        yield fitted(line[len(branch) :], branch.replace("├─", "│ ").replace("└─", "  ") + "   ", branch)


def _facts(about: dict[str, Any]) -> dict[str, str]:
    kinds = Counter(joint["kind"] for joint in about["joints"])
    shapes, massless = about["shapes"], sum(not body["mass"] for body in about["bodies"])
    bodies = f"{len(about['bodies'])}, {massless} without mass" if massless else f"{len(about['bodies'])}"
    facts = {
        "mass": f"{about['mass']:.6g} kg",
        "gravity": gravity_text(about["gravity"]),
        "bodies": bodies,
        "joints": f"{len(about['joints'])}: {', '.join(f'{count} {kind}' for kind, count in kinds.items())}",
        "independent": ", ".join(about["independent"]),
        "actuators": ", ".join(_actuator(actuator) for actuator in about["actuators"]) or "none",
        "springs": ", ".join(spring["name"] for spring in about["springs"]),
        "frames": ", ".join(about["frames"]),
        "keyframes": ", ".join(about["keyframes"]),
        "shapes": f"{shapes['count']}: {shapes['visible']} visible, {shapes['touching']} for contact",
    }
    return {name: text for name, text in facts.items() if text and (name != "shapes" or shapes["count"])}


def _actuator(actuator: dict[str, Any]) -> str:
    """The name of an actuator, and its kind unless it is a motor."""
    return actuator["name"] + ("" if actuator["kind"] == "motor" else f" ({actuator['kind']})")


def _closures(about: dict[str, Any]) -> Iterator[str]:
    """Loops and couplings, and how far they are from closed in the neutral configuration."""
    loops = {x["name"]: f"{x['kind']}, {x['predecessor']} to {x['successor']}" for x in about["loops"]}
    couplings = {x["name"]: ", ".join(x["joints"]) for x in about["couplings"]}
    for what, rows in (("loop", loops), ("coupling", couplings)):
        if rows:
            worst = max(x["error"] for x in about[f"{what}s"])
            yield f"\n{heading(counted(len(rows), what))}, closed at neutral to {worst:.2g} (m or rad)"
            yield columns(rows, "  ")


def _notes(about: dict[str, Any]) -> Iterator[str]:
    for what in ("notes", "warnings"):
        if about[what]:
            yield f"\n{heading(what)}"
            yield from (fitted(text, "  ", "- ") for text in about[what])

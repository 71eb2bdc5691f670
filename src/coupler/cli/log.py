"""`coupler log`: describes the log of a run, or converts it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from coupler.cli.output import columns, print_json
from coupler.cli.parser import Verb, add_force, add_json, check_out, file_path
from coupler.model import ModelError
from coupler.model.wording import counted


def _add(parser: ArgumentParser) -> None:
    parser.add_argument("log", metavar="LOG", type=file_path, help="a log: .clog, also while a run writes it, or .npz")
    parser.add_argument(
        "out",
        metavar="OUT",
        type=file_path,
        nargs="?",
        help="the file to write: .clog, .npz, .csv, .mcap, .rrd (Rerun)",
    )
    parser.add_argument("--every", metavar="N", type=int, default=1, help="take one row of N")
    add_force(parser)
    add_json(parser)


def _run(given: Namespace) -> int:
    from coupler.simulate import Log

    if given.every < 1:
        raise ModelError(f"--every must be 1 or more, got {given.every}")
    log, out = Log.load(given.log)[:: given.every], given.out
    if out is None:
        damage = _damage(log)
        facts = {**_facts(log), **({"note": damage} if damage else {})}
        if given.json:
            print_json(facts)
        else:
            print(columns({name.replace("_", " "): _text(value) for name, value in facts.items()}))
        return 1 if damage else 0
    check_out(out, given)
    log.save(out)
    if given.json:
        print_json({"saved": str(out), "rows": len(log)})
    else:
        print(f"saved {out}: {counted(len(log), 'row')}")
    return 0


VERB = Verb("log", "describe a log, or convert it", "coupler log run.clog run.csv", _add, _run)


def _facts(log: Any) -> dict[str, Any]:
    times = log.times
    return {
        "robot": log.robot,
        "rows": len(log),
        "from": float(times[0]) if len(log) else None,
        "to": float(times[-1]) if len(log) else None,
        "step": log.step,
        "columns": log.columns,
        "joints": log.joints,
        "contacts": log.contacts,
        "note": log.note,
    }


def _damage(log: Any) -> str:
    """A message on damaged rows of a log, which shows only when they are read; empty if they are intact."""
    try:
        for part in log.parts():
            for name in part.columns:
                getattr(part, name)
    except ModelError as error:
        return str(error)
    return ""


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    return "" if value is None else f"{value:.6g} s" if isinstance(value, float) else str(value)

"""The command line: `coupler study NAME`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from coupler import ModelError, __version__
from coupler.studies import STUDIES, run

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="coupler", description="Exact dynamics of robots with kinematic loops.")
    parser.add_argument("--version", action="version", version=f"coupler {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listing = "\n".join(f"  {name:12} {about}" for name, (_, about) in STUDIES.items())
    study = verbs.add_parser(
        "study",
        help="run a table or figure of the papers again",
        epilog=f"studies:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    study.add_argument("name", metavar="NAME", help="which; see below")
    study.add_argument("--out", type=Path, default=Path("studies"), help="folder for data and pictures (studies)")
    given = parser.parse_args(arguments)
    try:
        run(given.name, given.out)
    except (ModelError, OSError) as error:
        print(f"coupler: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The command line: `coupler VERB ...`. Each verb is a file in this package; docs/command_line.md describes them."""

from __future__ import annotations

import os
import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Sequence

from coupler import ModelError, __version__
from coupler.cli import check, convert, demo, draw, info, log, plot, render, study, view
from coupler.cli.output import complain, unknown
from coupler.cli.parser import Parser, UsageError, Verb

__all__ = ["main"]

VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        *(info.VERB, check.VERB, draw.VERB, view.VERB, convert.VERB),
        *(log.VERB, plot.VERB, render.VERB, study.VERB, demo.VERB),
    )
}
INTERRUPTED = 130  # the status of a command that Ctrl-C ends, by the custom of shells


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: the arguments after `coupler`; by default those of the process.

    Returns:
        The exit status: 0, 1 if something failed, or 2 if the command was not understood. `check` has its own.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started us
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    try:
        status = _run(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return status
    except UsageError as error:
        complain(error)
        return 2
    except BrokenPipeError:  # the reader of our output has closed it, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ModelError as error:
        complain(error)
        return 1
    except OSError as error:
        complain(f"{error.filename or 'the output'}: {error.strerror or error}")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(arguments: list[str]) -> int:
    parser = _parser()
    if not arguments:
        print(parser.format_help(), end="", file=sys.stderr)
        return 2
    first = arguments[0]
    if not first.startswith("-") and first not in VERBS:
        raise UsageError(unknown("verb", first, VERBS))
    given, extra = parser.parse_known_args(arguments)
    if extra:
        raise UsageError(_unexpected(given.parser if given.verb else parser, extra[0]))
    if not given.verb:
        raise UsageError(f"no verb given; the verbs are {', '.join(VERBS)}")
    return VERBS[given.verb].run(given)


def _parser() -> Parser:
    examples = [f"  {verb.example:40} {verb.about}" for verb in VERBS.values()]
    parser = Parser(
        prog="coupler",
        usage="coupler VERB ... | --help | --version",
        description="Exact dynamics of robots with kinematic loops.",
        epilog="\n".join(
            ["verbs, by example:", *examples, "", "`coupler VERB --help` describes the arguments of a verb."]
        ),
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"coupler {__version__}")
    verbs = parser.add_subparsers(prog="coupler", dest="verb", metavar="VERB", help="the action", title="arguments")
    for verb in VERBS.values():
        verb_parser = verbs.add_parser(
            verb.name,
            description=f"{verb.about[0].upper()}{verb.about[1:]}.",
            epilog="\n".join([*verb.more, f"example: {verb.example}"]),
            formatter_class=RawDescriptionHelpFormatter,
        )
        verb_parser.set_defaults(parser=verb_parser)
        verb.add(verb_parser)
    return parser


def _unexpected(parser: Parser, argument: str) -> str:
    """The message for an argument that the command does not take."""
    if argument.startswith("-"):
        where = parser.prog.removeprefix("coupler").strip()
        return f"{where}: " * bool(where) + unknown("option", argument.split("=")[0], parser.options())
    return f"`{parser.prog}` does not take the argument {argument!r}; see `{parser.prog} --help`"

"""The command line as a whole: what is understood, what is not, and how it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coupler import __version__, load, robots
from coupler.cli import VERBS, info, main
from coupler.model import ModelError


def err(capsys: pytest.CaptureFixture[str]) -> str:
    """What went to stderr: a single line, and nothing to stdout."""
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.startswith("coupler: ") and captured.err.count("\n") == 1
    return captured.err.removeprefix("coupler: ").rstrip("\n")


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "coupler", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"coupler {__version__}\n"


def test_without_a_verb_there_is_a_short_help_with_an_example_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    told = capsys.readouterr().err
    assert all(verb.example in told for verb in VERBS.values())
    assert max(map(len, told.splitlines())) <= 100


def test_help_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "verbs, by example" in capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_a_help_with_an_example(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([verb, "--help"])
    told = capsys.readouterr().out
    assert told.startswith(f"usage: coupler {verb} ")
    assert told.endswith(f"example: {VERBS[verb].example}\n")


def test_the_examples_are_understood_by_their_verbs() -> None:
    from coupler.cli import _parser

    for name, verb in VERBS.items():
        given, extra = _parser().parse_known_args(verb.example.split()[1:])
        assert (given.verb, extra) == (name, [])


def test_a_mistyped_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inof", "four_bar"]) == 2
    known = ", ".join(map(repr, VERBS))
    assert err(capsys) == f"there is no verb 'inof'; did you mean 'info'? there are {known}"


def test_a_verb_like_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["xyzzy"]) == 2
    assert err(capsys).startswith("there is no verb 'xyzzy'; there are 'info', ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["info", "four_bar", "--jsno"], "info: there is no option '--jsno'; did you mean '--json'? there are "),
        (["--verison"], "there is no option '--verison'; did you mean '--version'? there are '--help', '--version'"),
        (["info", "four_bar", "--js"], "info: there is no option '--js'; did you mean '--json'?"),
        (["info"], "the following arguments are required: FILE; `coupler info --help` describes its arguments"),
        (["info", "four_bar", "tello"], "`coupler info` does not take the argument 'tello'"),
        (["info", "four_bar", "--package", "x"], "argument --package: 'x' must have a name and a value"),
        (["draw", "four_bar", "--out"], "argument --out: expected one argument"),
    ],
)
def test_what_is_not_understood(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert err(capsys).startswith(told)


def test_a_robot_that_there_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_robot.urdf").touch()
    assert main(["info", "my_robto.urdf"]) == 1
    assert "Did you mean 'my_robot.urdf'? Bundled robots: mini_cheetah, " in err(capsys)
    assert main(["info", "mini_cheeta"]) == 1
    assert "Did you mean 'mini_cheetah'?" in err(capsys)
    assert main(["info", "nowhere/at/all"]) == 1
    assert err(capsys).startswith("there is no file 'nowhere/at/all', and no bundled robot of this name. ")
    assert main(["info", str(tmp_path)]) == 1
    assert err(capsys) == f"{tmp_path} is a folder; name a file in it: {str(tmp_path / 'my_robot.urdf')!r}"


def test_options_of_files_are_not_for_bundled_robots(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "tello", "--lock-idle"]) == 1
    assert err(capsys) == "'tello' is a bundled robot: --lock-idle is for files only"


def test_a_file_wins_over_a_bundled_robot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tello").write_text("<robot name='mine'><link name='a'/></robot>")
    assert main(["info", "tello"]) == 0
    assert capsys.readouterr().out.startswith("mine: 1 body")


def test_errors_are_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_: object) -> None:
        raise ModelError("its inertia is\n[[1 2]\n [3 4]]")

    monkeypatch.setattr(info, "load_robot", fail)
    assert main(["info", "four_bar"]) == 1
    assert err(capsys) == "its inertia is [[1 2] [3 4]]"


def test_an_interrupt_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(info, "load_robot", interrupt)
    assert main(["info", "four_bar"]) == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.skipif(os.name != "posix", reason="pipes are closed otherwise elsewhere")
def test_a_closed_pipe_is_no_error() -> None:
    command = [sys.executable, "-m", "coupler", "info", "mini_cheetah"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no device that is always full")
@pytest.mark.parametrize(("to", "status", "told"), [(">/dev/full", 1, "No space left on device"), (">&-", 0, "")])
def test_output_that_cannot_be_written(to: str, status: int, told: str) -> None:
    command = f"exec '{sys.executable}' -m coupler study {to}"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == status
    assert done.stderr == (f"coupler: the output: {told}\n" if told else "")


@pytest.mark.parametrize("verb", ["study 003-table2", "demo"])
def test_a_file_where_a_folder_is_wanted(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").touch()
    assert main([*verb.split(), "--out", str(tmp_path / "out")]) == 1
    assert err(capsys) == f"{tmp_path / 'out'}: it is a file; name a folder"


def test_an_empty_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", ""]) == 2
    assert err(capsys).startswith("argument FILE: it is empty; name a file")
    assert main(["convert", "tello", ""]) == 2
    assert err(capsys).startswith("argument OUT: it is empty; name a file")
    with pytest.raises(ModelError, match="loaded from the path of a file, got ''"):
        load("")


def test_headings_are_bold_on_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from coupler.cli.output import heading

    monkeypatch.delenv("NO_COLOR", raising=False)
    assert heading("x") == "x"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert heading("x") == "\033[1mx\033[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert heading("x") == "x"


def test_all_bundled_robots_have_names_that_the_command_line_takes() -> None:
    assert not any(name.startswith("-") for name in robots.names())

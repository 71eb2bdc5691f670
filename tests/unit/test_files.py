"""Files take their place as a whole, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from coupler.files import whole_file


def test_a_file_is_there_once_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"before")
    with whole_file(path) as file:
        file.write(b"after")
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after"
    assert os.listdir(tmp_path) == ["data"]


def test_after_an_error_what_was_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"before")

    def interrupted() -> None:
        with whole_file(path) as file:
            file.write(b"half of")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["data"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_permissions_and_files_that_are_not_to_be_replaced(tmp_path: Path) -> None:
    path = tmp_path / "data"
    with whole_file(path, mode=0o600, replace=False) as file:
        file.write(b"first")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError), whole_file(path, replace=False) as file:
        file.write(b"second")
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["data"]


def test_without_hard_links_a_file_that_is_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    path = tmp_path / "data"
    with whole_file(path, replace=False) as file:
        file.write(b"first")
    with pytest.raises(FileExistsError), whole_file(path, replace=False) as file:
        file.write(b"second")
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["data"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "none" / "data"):
        pass

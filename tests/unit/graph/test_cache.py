"""The cache of compiled code: what it keeps, what it refuses, and that trouble is a miss and never an exception."""

import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coupler.graph import cache

KEY, OTHER = cache.digest("key"), cache.digest("other")
CODE = b"\x7fELF code"

posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owner and mode of files are POSIX notions")


@pytest.fixture
def where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache in a folder that does not exist yet."""
    where = tmp_path / "not" / "there" / "cache"
    monkeypatch.setenv("COUPLER_CACHE", str(where))
    return where


@pytest.fixture
def entry(where: Path) -> Path:
    """The file of a cache that holds `CODE` under `KEY`."""
    cache.store(KEY, CODE)
    assert cache.load(KEY) == CODE
    return where / f"{KEY}.coupler"


def names(where: Path) -> set[str]:
    return {path.name for path in where.iterdir()}


def spawn(script: str, *arguments: str) -> subprocess.Popen[str]:
    """Starts another process that sees the same package and the same cache."""
    root = str(Path(cache.__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": root},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(child: subprocess.Popen[str]) -> str:
    output, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    return output


def failing(number: int) -> Callable[..., object]:
    def fail(*_: object, **__: object) -> object:
        raise OSError(number, os.strerror(number))

    return fail


# --- digest


def test_digest_is_the_sha256_of_length_prefixed_parts() -> None:
    # computed with another tool: printf '\x02\0\0\0\0\0\0\0ab\x01\0\0\0\0\0\0\0c' | sha256sum
    assert cache.digest("ab", b"c") == "43ee655579de01ca739b3f95c1c2d3f46d353b2c0df818064ea594506cdb2617"


def test_digest_takes_text_as_utf8_and_lone_surrogates_too() -> None:
    assert cache.digest("é") == cache.digest(b"\xc3\xa9")
    assert cache.digest("\udc80") != cache.digest("\udc81")


@given(st.lists(st.binary(max_size=3), max_size=4), st.lists(st.binary(max_size=3), max_size=4))
def test_digest_tells_apart_what_concatenation_does_not(one: list[bytes], two: list[bytes]) -> None:
    assert (cache.digest(*one) == cache.digest(*two)) == (one == two)


@pytest.mark.parametrize(
    ("one", "two"), [(("ab", "c"), ("a", "bc")), (("a", ""), ("", "a")), (("a",), ("a", "")), ((), ("",))]
)
def test_digest_sees_where_parts_end(one: tuple[str, ...], two: tuple[str, ...]) -> None:
    assert cache.digest(*one) != cache.digest(*two)


# --- folder


@pytest.fixture
def no_choice(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("COUPLER_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@posix
@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "/home/someone/.cache/coupler"),
        ("linux", {"XDG_CACHE_HOME": "/elsewhere"}, "/elsewhere/coupler"),
        ("linux", {"XDG_CACHE_HOME": "relative/path"}, "/home/someone/.cache/coupler"),
        ("linux", {"XDG_CACHE_HOME": ""}, "/home/someone/.cache/coupler"),
        ("darwin", {"XDG_CACHE_HOME": "/elsewhere"}, "/home/someone/Library/Caches/coupler"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/coupler"),
        ("win32", {}, "/home/someone/AppData/Local/coupler"),
    ],
)
def test_folder_of_the_platform(
    no_choice: pytest.MonkeyPatch, platform: str, variables: dict[str, str], expected: str
) -> None:
    no_choice.setattr(sys, "platform", platform)
    no_choice.setenv("HOME", "/home/someone")
    for name, value in variables.items():
        no_choice.setenv(name, value)
    assert cache.folder() == Path(expected)


def test_folder_is_read_from_the_environment_at_every_call(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COUPLER_CACHE", str(tmp_path / "one"))
    assert cache.folder() == tmp_path / "one"
    monkeypatch.setenv("COUPLER_CACHE", str(tmp_path / "two"))
    assert cache.folder() == tmp_path / "two"


@posix
def test_folder_expands_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.setenv("COUPLER_CACHE", "~/here")
    assert cache.folder() == Path("/home/someone/here")


@pytest.mark.parametrize("chosen", [None, "~/here", "~nobody-has-this-name/here"])
def test_no_home_folder_means_no_cache(no_choice: pytest.MonkeyPatch, chosen: str | None) -> None:
    def homeless(path: str) -> str:  # what os.path.expanduser does when it knows no home: nothing
        return path

    no_choice.setattr(os.path, "expanduser", homeless)
    if chosen is not None:
        no_choice.setenv("COUPLER_CACHE", chosen)
    assert cache.folder() is None
    cache.store(KEY, CODE)
    assert cache.load(KEY) is None
    assert cache.clear() == 0


@posix
def test_a_relative_home_folder_is_none(no_choice: pytest.MonkeyPatch) -> None:
    no_choice.setattr(sys, "platform", "linux")
    no_choice.setenv("HOME", "somewhere")
    assert cache.folder() is None


# --- what is kept


@pytest.mark.parametrize("code", [b"", b"\0", CODE, bytes(range(256)) * 1000])
def test_roundtrip(where: Path, code: bytes) -> None:
    assert cache.load(KEY) is None
    cache.store(KEY, code)
    assert cache.load(KEY) == code
    assert cache.load(OTHER) is None
    assert names(where) == {"secret", f"{KEY}.coupler"}
    assert (where / f"{KEY}.coupler").read_bytes().startswith(b"coupler\x01")


def test_the_last_store_wins(entry: Path) -> None:
    cache.store(KEY, b"newer")
    cache.store(OTHER, b"unrelated")
    assert cache.load(KEY) == b"newer"


def test_other_processes_load_what_this_one_stored_and_back(entry: Path) -> None:
    script = (
        "import sys; from coupler.graph import cache; print(cache.load(sys.argv[1])); cache.store(sys.argv[2], b'back')"
    )
    assert finish(spawn(script, KEY, OTHER)).strip() == repr(CODE)
    assert cache.load(OTHER) == b"back"


@posix
def test_only_the_user_can_read_what_is_made(entry: Path) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (entry.parent, *entry.parent.iterdir())}
    assert modes == {"cache": 0o700, "secret": 0o600, entry.name: 0o600}


@pytest.mark.parametrize("value", ["off", "OFF", "Off", "0", ""])
def test_off(entry: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str) -> None:
    monkeypatch.chdir(tmp_path)
    before = names(tmp_path)
    monkeypatch.setenv("COUPLER_CACHE", value)
    assert cache.folder() is None
    assert cache.load(KEY) is None
    cache.store(OTHER, CODE)
    assert cache.clear() == 0
    assert names(tmp_path) == before
    assert names(entry.parent) == {"secret", entry.name}


@pytest.mark.parametrize(
    "key", ["", "xyz", "../" + KEY, KEY + "\n", " " + KEY, KEY.upper(), "a/b", "a.b", "a\0", "٣", "a" * 129]
)
@pytest.mark.parametrize("off", [False, True])
def test_a_key_that_is_not_hex_is_refused(where: Path, monkeypatch: pytest.MonkeyPatch, key: str, off: bool) -> None:
    if off:
        monkeypatch.setenv("COUPLER_CACHE", "off")
    with pytest.raises(ValueError, match="hex"):
        cache.load(key)
    with pytest.raises(ValueError, match="hex"):
        cache.store(key, CODE)
    assert not where.exists()


# --- damaged, moved and foreign entries


def test_truncated_at_every_length(entry: Path) -> None:
    whole = entry.read_bytes()
    for length in range(len(whole)):
        entry.write_bytes(whole[:length])
        assert cache.load(KEY) is None, length
    entry.write_bytes(whole)
    assert cache.load(KEY) == CODE


def test_every_flipped_bit(entry: Path) -> None:
    whole = entry.read_bytes()
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        entry.write_bytes(damaged)
        assert cache.load(KEY) is None, bit
    entry.write_bytes(whole)
    assert cache.load(KEY) == CODE


@pytest.mark.parametrize("junk", [b"\0", b"more", CODE])
def test_appended_bytes(entry: Path, junk: bytes) -> None:
    entry.write_bytes(entry.read_bytes() + junk)
    assert cache.load(KEY) is None


def test_another_format_version(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MAGIC", b"coupler\x02")
    assert cache.load(KEY) is None


def test_the_seal_covers_the_format_version(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MAGIC", b"coupler\x02")
    entry.write_bytes(b"coupler\x02" + entry.read_bytes()[8:])
    assert cache.load(KEY) is None


def test_renamed_to_another_key(entry: Path) -> None:
    entry.rename(entry.with_name(f"{OTHER}.coupler"))
    assert cache.load(OTHER) is None


def test_the_seal_tells_where_the_key_ends_and_the_code_begins(where: Path) -> None:
    cache.store("ab", b"cd")
    whole = (where / "ab.coupler").read_bytes()
    (where / "abc.coupler").write_bytes(whole[:-2] + b"d")
    (where / "abc.coupler").chmod(0o600)
    assert cache.load("ab") == b"cd"
    assert cache.load("abc") is None


def test_a_damaged_entry_is_mended_by_the_next_store(entry: Path) -> None:
    entry.write_bytes(b"")
    cache.store(KEY, CODE)
    assert cache.load(KEY) == CODE


def test_made_with_a_foreign_secret(entry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUPLER_CACHE", str(tmp_path / "theirs"))
    cache.store(KEY, b"their code")
    cache.store(OTHER, b"their code")
    assert cache.load(KEY) == b"their code"
    for path in (tmp_path / "theirs").glob("*.coupler"):
        shutil.copy(path, entry.parent)
    monkeypatch.setenv("COUPLER_CACHE", str(entry.parent))
    assert cache.load(KEY) is None
    assert cache.load(OTHER) is None


def test_copied_without_its_secret(entry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "copy"
    copy.mkdir(0o700)
    shutil.copy(entry, copy)
    monkeypatch.setenv("COUPLER_CACHE", str(copy))
    assert cache.load(KEY) is None
    assert not (copy / "secret").exists()
    cache.store(OTHER, CODE)
    assert cache.load(OTHER) == CODE
    assert cache.load(KEY) is None


def test_larger_than_the_limit_is_neither_written_nor_read(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = entry.stat().st_size
    monkeypatch.setattr(cache, "ENTRY_LIMIT", size)
    cache.store(OTHER, CODE + b"!")
    assert names(entry.parent) == {"secret", entry.name}
    assert cache.load(KEY) == CODE
    monkeypatch.setattr(cache, "ENTRY_LIMIT", size - 1)
    assert cache.load(KEY) is None


# --- what kind of file, whose, and who else may write


@posix
@pytest.mark.parametrize("mode", [0o770, 0o720, 0o702, 0o707, 0o777, 0o1777])
def test_a_folder_others_can_write_is_refused(entry: Path, mode: int) -> None:
    entry.parent.chmod(mode)
    assert cache.load(KEY) is None
    cache.store(OTHER, CODE)
    assert names(entry.parent) == {"secret", entry.name}
    entry.parent.chmod(0o755)  # readable by others is no harm
    assert cache.load(KEY) == CODE


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_an_entry_others_can_write_is_refused(entry: Path, mode: int) -> None:
    entry.chmod(mode)
    assert cache.load(KEY) is None
    entry.chmod(0o644)
    assert cache.load(KEY) == CODE


@posix
def test_a_folder_of_another_user_is_refused(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stranger = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: stranger)
    assert cache.load(KEY) is None
    cache.store(OTHER, CODE)
    assert names(entry.parent) == {"secret", entry.name}


@posix
@pytest.mark.parametrize("name", ["secret", f"{KEY}.coupler"])
@pytest.mark.parametrize("change", ["owner", "kind"])
def test_another_users_file_or_a_device_is_refused(
    entry: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: str
) -> None:
    # only the superuser can make such files, so here the system is made to describe ours as one
    number, fstat = (entry.parent / name).stat().st_ino, os.fstat

    def changed(descriptor: int) -> os.stat_result:
        info = fstat(descriptor)
        if info.st_ino != number:
            return info
        if change == "owner":
            return os.stat_result((*info[:4], info.st_uid + 1, *info[5:]))
        return os.stat_result((stat.S_IFCHR | stat.S_IMODE(info.st_mode), *info[1:]))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", changed)
        assert cache.load(KEY) is None
    assert cache.load(KEY) == CODE


@posix
def test_a_symlinked_folder_is_followed_and_its_target_judged(
    entry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(entry.parent)
    monkeypatch.setenv("COUPLER_CACHE", str(link))
    assert cache.load(KEY) == CODE
    entry.parent.chmod(0o777)
    assert cache.load(KEY) is None


@posix
@pytest.mark.parametrize("name", ["secret", f"{KEY}.coupler"])
def test_a_symlink_is_no_entry_and_no_secret(entry: Path, tmp_path: Path, name: str) -> None:
    path = entry.parent / name
    path.rename(tmp_path / "target")
    path.symlink_to(tmp_path / "target")
    target = path.read_bytes()
    assert cache.load(KEY) is None
    cache.store(KEY, b"newer")  # takes the place of the link and leaves alone what it points to
    assert cache.load(KEY) == b"newer"
    assert not path.is_symlink()
    assert (tmp_path / "target").read_bytes() == target


@posix
@pytest.mark.parametrize("name", ["secret", f"{KEY}.coupler"])
def test_a_pipe_is_refused_without_waiting_for_a_writer(entry: Path, name: str) -> None:
    (entry.parent / name).unlink()
    os.mkfifo(entry.parent / name, 0o600)
    script = "import sys; from coupler.graph import cache; print(cache.load(sys.argv[1]))"
    assert finish(spawn(script, KEY)).strip() == "None"  # a process of its own: the failure to guard against hangs


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="open descriptors are counted in /dev/fd")
def test_no_descriptor_is_left_open(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def use() -> None:
        cache.load(KEY)
        cache.store(OTHER, CODE)
        (entry.parent / f"{'a' * 64}.coupler").mkdir(exist_ok=True)
        assert cache.load("a" * 64) is None
        entry.chmod(0o666)
        assert cache.load(KEY) is None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "replace", failing(errno.EACCES))
            cache.store(KEY, CODE)
        entry.unlink()
        entry.symlink_to("nowhere")
        assert cache.load(KEY) is None
        entry.unlink()
        cache.store(KEY, CODE)

    use()
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        use()
    assert len(os.listdir("/dev/fd")) == before


# --- the secret


@pytest.mark.parametrize("size", [0, 1, 31, 33, 64])
def test_a_secret_of_the_wrong_size_is_replaced_by_store_alone(entry: Path, size: int) -> None:
    secret = entry.parent / "secret"
    damaged = (secret.read_bytes() * 2)[:size]
    secret.write_bytes(damaged)
    assert cache.load(KEY) is None
    assert secret.read_bytes() == damaged
    cache.store(OTHER, CODE)
    assert len(secret.read_bytes()) == 32
    assert cache.load(OTHER) == CODE
    assert cache.load(KEY) is None
    assert (entry.parent / "secret.old").read_bytes() == damaged  # it may have been a file of the user's own


@pytest.mark.parametrize("size", [0, 31])
def test_a_short_secret_is_no_secret_even_if_the_entry_was_made_with_it(entry: Path, size: int) -> None:
    short = bytes(size)
    (entry.parent / "secret").write_bytes(short)
    entry.write_bytes(cache._seal(short, KEY, CODE) + CODE)  # pyright: ignore[reportPrivateUsage]
    assert cache.load(KEY) is None


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o666])
def test_a_secret_others_know_is_replaced_by_store_alone(entry: Path, mode: int) -> None:
    secret = entry.parent / "secret"
    known = secret.read_bytes()
    secret.chmod(mode)
    assert cache.load(KEY) is None
    assert secret.read_bytes() == known
    cache.store(OTHER, CODE)
    assert secret.read_bytes() != known
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert cache.load(OTHER) == CODE
    assert cache.load(KEY) is None


def test_a_folder_in_place_of_the_secret(entry: Path) -> None:
    (entry.parent / "secret").unlink()
    (entry.parent / "secret").mkdir()
    assert cache.load(KEY) is None
    cache.store(KEY, CODE)
    assert cache.load(KEY) == CODE


def test_a_sound_secret_is_kept(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (entry.parent / "secret").read_bytes()
    monkeypatch.setattr(os, "link", failing(errno.EPERM))  # making one is not even tried
    cache.store(OTHER, CODE)
    assert cache.load(OTHER) == CODE
    assert (entry.parent / "secret").read_bytes() == before
    assert cache.load(KEY) == CODE


def test_secrets_differ(where: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store(KEY, CODE)
    monkeypatch.setenv("COUPLER_CACHE", str(tmp_path / "another"))
    cache.store(KEY, CODE)
    assert (where / "secret").read_bytes() != (tmp_path / "another" / "secret").read_bytes()


def test_the_secret_of_who_came_first_is_taken(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, link = b"f" * 32, os.link

    def late(source: Path, target: Path) -> None:
        target.write_bytes(first)
        target.chmod(0o600)
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    cache.store(KEY, CODE)
    assert (where / "secret").read_bytes() == first
    assert cache.load(KEY) == CODE
    assert names(where) == {"secret", f"{KEY}.coupler"}


# --- trouble with folder and disk


@pytest.mark.parametrize("inside", [False, True])
def test_the_folder_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: bool) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"mine")
    monkeypatch.setenv("COUPLER_CACHE", str(file / "cache" if inside else file))
    assert cache.load(KEY) is None
    cache.store(KEY, CODE)
    assert cache.clear() == 0
    assert file.read_bytes() == b"mine"


@posix
def test_the_folder_is_a_loop_of_symlinks(where: Path) -> None:
    where.parent.mkdir(parents=True)
    where.symlink_to(where)
    assert cache.load(KEY) is None
    cache.store(KEY, CODE)
    assert cache.clear() == 0


def test_a_folder_whose_name_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUPLER_CACHE", str(tmp_path / ("x" * 5000)))
    assert cache.load(KEY) is None
    cache.store(KEY, CODE)
    assert cache.clear() == 0


@posix
def test_a_read_only_folder_serves_and_is_not_written(entry: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("the superuser may write everywhere")
    entry.parent.chmod(0o500)
    try:
        assert cache.load(KEY) == CODE
        cache.store(OTHER, CODE)
        assert cache.load(OTHER) is None
    finally:
        entry.parent.chmod(0o700)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EMFILE, errno.EIO])
def test_files_that_cannot_be_opened(entry: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", failing(number))
        assert cache.load(KEY) is None
        cache.store(OTHER, CODE)
    assert names(entry.parent) == {"secret", entry.name}
    assert cache.load(KEY) == CODE  # in particular, the secret survived


@pytest.mark.parametrize(
    "error", [PermissionError(1, "no"), OSError(95, "no"), NotImplementedError(), AttributeError()]
)
def test_a_file_system_without_hard_links_stores_by_rename(
    where: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(os, "link", refused)
    cache.store(KEY, CODE)
    secret = (where / "secret").read_bytes()
    assert cache.load(KEY) == CODE
    cache.store(OTHER, CODE)
    assert cache.load(OTHER) == CODE
    assert (where / "secret").read_bytes() == secret
    assert len(names(where)) == 3


@pytest.mark.parametrize("call", ["mkdir", "replace", "open"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EPERM, errno.ENOTSUP])
def test_a_first_store_that_fails_leaves_no_file(
    where: Path, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing(number))
        cache.store(KEY, CODE)
    assert cache.load(KEY) is None
    assert not where.exists() or names(where) <= {"secret"}
    cache.store(KEY, CODE)
    assert cache.load(KEY) == CODE


def test_an_entry_that_cannot_be_replaced_stays_as_it_is(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failing(errno.EACCES))
        cache.store(KEY, b"newer")
    assert cache.load(KEY) == CODE
    assert names(entry.parent) == {"secret", entry.name}


def test_a_temporary_file_is_in_the_same_folder_and_under_no_key(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Path] = []

    def watch(source: Path, target: Path) -> None:
        seen.append(source)
        source.rename(target)

    monkeypatch.setattr(os, "replace", watch)
    cache.store(KEY, CODE)
    assert [path.parent for path in seen] == [where]
    with pytest.raises(ValueError, match="hex"):
        cache.load(seen[0].stem)


def test_an_interrupted_store_leaves_no_file_and_stays_an_interrupt(
    entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cache.store(KEY, b"newer")
    assert cache.load(KEY) == CODE
    assert names(entry.parent) == {"secret", entry.name}


@posix
def test_a_full_disk_leaves_no_file(entry: Path) -> None:
    # A limit on the size of files makes the system stop the write half-way, as a full disk does.
    script = """
import resource, sys
from coupler.graph import cache
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    with open(cache.folder() / "probe", "wb") as file:
        file.write(bytes(20_000))
except OSError:
    cache.store(sys.argv[1], bytes(20_000))
    cache.store(sys.argv[2], bytes(20_000))
    print("stopped", cache.load(sys.argv[1]))
"""
    assert finish(spawn(script, KEY, OTHER)).strip() == f"stopped {CODE!r}"
    assert names(entry.parent) == {"secret", entry.name, "probe"}


def test_an_entry_whose_time_cannot_be_set_is_served(entry: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "utime", failing(errno.EROFS))
    assert cache.load(KEY) == CODE


# --- many at once


def test_threads_and_processes_that_write_the_same_keys(where: Path) -> None:
    # Every process first stores a key of its own, all at the same moment and into a folder that is not there: those
    # can be loaded afterwards only if all of them came to use the same secret.
    script = """
import sys
from concurrent.futures import ThreadPoolExecutor
from coupler.graph import cache
def content(key): return key.encode() * 500
def work(turn):
    for number in range(20):
        key = cache.digest(str(number))
        cache.store(key, content(key))
        # another's temporary files come and go, but once stored an entry is always there and whole
        assert cache.load(key) == content(key), (turn, number)
print("ready", flush=True)
sys.stdin.readline()
cache.store(sys.argv[1], content(sys.argv[1]))
with ThreadPoolExecutor(4) as pool:
    list(pool.map(work, range(4)))
"""
    own = [cache.digest("own", str(number)) for number in range(6)]
    children = [spawn(script, key) for key in own]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    for child in children:
        finish(child)
    keys = own + [cache.digest(str(number)) for number in range(20)]
    assert [cache.load(key) for key in keys] == [key.encode() * 500 for key in keys]
    assert names(where) == {"secret", *(f"{key}.coupler" for key in keys)}


def test_threads_that_start_together_use_one_secret(where: Path) -> None:
    keys = [cache.digest(str(number)) for number in range(32)]
    with ThreadPoolExecutor(len(keys)) as pool:
        list(pool.map(lambda key: cache.store(key, key.encode()), keys))
    assert [cache.load(key) for key in keys] == [key.encode() for key in keys]


# --- bounded size


def fill(where: Path, count: int, size: int = 1000) -> list[str]:
    """Stores entries whose times lie in the past, the first the oldest."""
    keys = [cache.digest("entry", str(number)) for number in range(count)]
    for number, key in enumerate(keys):
        cache.store(key, bytes(size))
        os.utime(where / f"{key}.coupler", (1_000_000 + number, 1_000_000 + number))
    return keys


def kept(keys: list[str]) -> list[bool]:
    where = cache.folder()
    assert where is not None
    return [(where / f"{key}.coupler").exists() for key in keys]


def test_the_oldest_go_first_and_only_as_many_as_needed(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = fill(where, 5)
    size = (where / f"{keys[0]}.coupler").stat().st_size
    monkeypatch.setattr(cache, "LIMIT", 6 * size)
    cache.store(KEY, bytes(1000))  # exactly at the limit
    assert kept([*keys, KEY]) == [True] * 6
    os.utime(where / f"{KEY}.coupler", (2_000_000, 2_000_000))
    cache.store(OTHER, bytes(1001))  # an entry and a byte above it, so two have to go
    assert kept([*keys, KEY, OTHER]) == [False, False, True, True, True, True, True]


def test_what_was_used_stays(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = fill(where, 5)
    assert cache.load(keys[0]) is not None
    monkeypatch.setattr(cache, "LIMIT", 3500)
    cache.store(KEY, bytes(1000))
    assert kept([*keys, KEY]) == [True, False, False, False, True, True]


def test_what_was_just_stored_stays_even_if_the_others_come_from_the_future(
    where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = fill(where, 3)
    for number, key in enumerate(keys):
        os.utime(where / f"{key}.coupler", (9_000_000_000 + number, 9_000_000_000 + number))
    monkeypatch.setattr(cache, "LIMIT", 2500)
    cache.store(KEY, bytes(1000))
    assert kept([*keys, KEY]) == [False, False, True, True]


def test_eviction_spares_foreign_files_and_takes_what_a_killed_writer_left(
    where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = fill(where, 2)
    for name in ("notes.txt", "tmp-0123456789abcdef.coupler"):
        (where / name).write_bytes(bytes(5000))
        os.utime(where / name, (1000, 1000))
    monkeypatch.setattr(cache, "LIMIT", 3500)
    cache.store(KEY, bytes(1000))
    assert names(where) == {"secret", "notes.txt", *(f"{key}.coupler" for key in (*keys, KEY))}


def test_an_entry_that_cannot_be_removed_does_not_stop_the_eviction(
    where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = fill(where, 4)
    unlink = Path.unlink

    def stubborn(path: Path, missing_ok: bool = False) -> None:
        if path.stem == keys[0]:
            raise PermissionError(path)
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", stubborn)
    monkeypatch.setattr(cache, "LIMIT", 3500)
    cache.store(KEY, bytes(1000))
    assert kept([*keys, KEY]) == [True, False, True, True, True]


def test_an_entry_that_vanishes_does_not_stop_the_eviction(where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = fill(where, 4)
    scandir = os.scandir

    @contextmanager
    def vanishing(path: Path) -> Iterator[list[os.DirEntry[str]]]:
        with scandir(path) as listing:
            found = list(listing)
        (where / f"{keys[3]}.coupler").unlink()
        yield found

    monkeypatch.setattr(os, "scandir", vanishing)
    monkeypatch.setattr(cache, "LIMIT", 3500)
    cache.store(KEY, bytes(1000))
    assert kept([*keys, KEY]) == [False, True, True, False, True]


def test_the_folder_is_measured_by_a_new_process_and_then_once_in_a_while(
    where: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []
    shrink = cache._shrink  # pyright: ignore[reportPrivateUsage]

    def count(where: Path, limit: int, keep: Path | None = None) -> int:
        measured.append(limit)
        return shrink(where, limit, keep)

    script = """
import sys
from coupler.graph import cache
cache.LIMIT = 64_000
cache.store(sys.argv[1], b"x")  # far less than the thousand bytes that would make it due
"""
    keys = fill(where, 2, size=60_000)
    finish(spawn(script, KEY))
    assert kept([*keys, KEY]) == [False, True, True]
    monkeypatch.setattr(cache, "_shrink", count)
    monkeypatch.setattr(cache, "_unswept", 0)
    monkeypatch.setattr(cache, "LIMIT", 64 * 10_000)
    fill(where, 31)
    assert measured == [cache.LIMIT] * 2  # when 11 and 22 entries of 1000 bytes exceed 10 000 bytes


# --- clear


def test_clear_removes_entries_and_keeps_foreign_files(entry: Path) -> None:
    where = entry.parent
    cache.store(OTHER, b"")
    (where / "tmp-0123456789abcdef.coupler").touch()
    (where / "notes.txt").write_text("mine")
    (where / f"{KEY}.o").write_text("mine")
    (where / "folder.coupler").mkdir()
    assert cache.clear() == 3
    assert names(where) == {"secret", "notes.txt", f"{KEY}.o", "folder.coupler"}
    assert cache.load(KEY) is None
    assert cache.clear() == 0
    cache.store(KEY, CODE)
    assert cache.load(KEY) == CODE


@posix
def test_clear_does_not_follow_symlinks(entry: Path, tmp_path: Path) -> None:
    (tmp_path / "target").write_text("mine")
    (entry.parent / "link.coupler").symlink_to(tmp_path / "target")
    assert cache.clear() == 1
    assert (tmp_path / "target").read_text() == "mine"
    assert names(entry.parent) == {"secret", "link.coupler"}


def test_clear_removes_empty_files(where: Path) -> None:
    where.mkdir(parents=True)
    (where / f"{KEY}.coupler").touch()
    assert cache.clear() == 1
    assert names(where) == set()


def test_clear_without_a_folder(where: Path) -> None:
    assert cache.clear() == 0
    assert not where.exists()

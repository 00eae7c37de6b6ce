"""`slotmq passwd`: what it writes, what it leaves alone, what it refuses."""

import binascii
import errno
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from host_tests.broker.wire5.scram import METHOD, Exchange
from slotmq import Limits
from slotmq.access.users import Users
from slotmq.v5.scram import Scram
from slotmq_tools import cli, passwd

# RFC 7677, 3
SALT = binascii.a2b_base64(b"W22ZaJ0SNY7soEsUEjb6gQ==")
LINE = (
    b"user:4096:W22ZaJ0SNY7soEsUEjb6gQ==:WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
    b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
)
OTHERS = b"# ours\n\n  bob" + LINE[4:] + b"\r\nuser2" + LINE[4:] + b"\n"


def users_of(file: Path) -> Users:
    return Users(Limits(users=8), str(file))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "users"


def command(*args: str | Path, typed: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli.main, ["passwd", *map(str, args)], input=typed)


def said(what: str, file: Path, where: str = "in") -> str:
    return f"{what} {where} {file}\na broker that runs reads it again at SIGHUP\n"


def lines(file: Path) -> list[bytes]:
    """But for the secret of made-up salts."""
    found = file.read_bytes().splitlines()
    return [each for each in found if not each.startswith(b"#salts:")]


def test_the_secret_of_made_up_salts_is_written_once(tmp_path: Path) -> None:
    file = tmp_path / "users"
    for name in ("one", "two"):
        passwd.put(file, name, "pencil")
    passwd.delete(file, "one")
    (secret,) = [each for each in file.read_bytes().splitlines() if each[:1] == b"#"]
    assert len(binascii.a2b_base64(secret.removeprefix(b"#salts:"))) == 32


def test_the_line_of_rfc_7677_s_user() -> None:
    assert passwd.line("user", "pencil", 4096, SALT) == LINE


def test_what_is_written_lets_the_user_in(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: SALT[:size])
    assert command(file, "user", "--stdin", typed="pencil\n").output == said("user added", file)
    assert lines(file) == [LINE]
    assert list(users_of(file).slot_of) == [b"user"]


def test_the_prompt_asks_twice_and_shows_no_password(file: Path) -> None:
    done = command(file, "user", typed="secret-1\nsecret-2\nsecret-3\nsecret-3\n")
    assert done.exit_code == 0
    assert "do not match" in done.output
    assert "secret" not in done.output
    assert _lets_in(file, "secret-3") and not _lets_in(file, "secret-2")


def test_a_terminal_shows_nothing_of_the_password(file: Path) -> None:
    ours, theirs = pty.openpty()
    call = [sys.executable, "-m", "slotmq_tools.cli", "passwd", str(file), "user"]
    with subprocess.Popen(
        call, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    ) as process:
        os.close(theirs)
        seen = b""
        for prompt in (b"Password: ", b"confirmation: "):
            while not seen.endswith(prompt):
                seen += os.read(ours, 1)
            os.write(ours, b"swordfish\n")
        while b"added" not in seen:
            seen += os.read(ours, 1)
    os.close(ours)
    assert process.returncode == 0
    assert b"swordfish" not in seen
    assert _lets_in(file, "swordfish")


def test_without_a_terminal_it_names_stdin(file: Path) -> None:
    call = [sys.executable, "-m", "slotmq_tools.cli", "passwd", str(file), "user"]
    done = subprocess.run(
        call, input="secret\nsecret\n", capture_output=True, text=True, check=False,
        start_new_session=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: ") and "--stdin" in done.stderr
    assert not file.exists()


@pytest.mark.parametrize("typed", ["pencil", "pencil\n", "pencil\r\n"])
def test_a_newline_at_the_end_is_not_part_of_the_password(file: Path, typed: str) -> None:
    assert command(file, "user", "--stdin", typed=typed).exit_code == 0
    assert _lets_in(file, "pencil")


@pytest.mark.parametrize("password", [" pencil ", "pen:cil", "größer", "密碼", "x" * 200])
def test_valid_passwords(file: Path, password: str) -> None:
    assert command(file, "user", "--stdin", typed=password).exit_code == 0
    assert _lets_in(file, password)


@pytest.mark.parametrize("name", ["living room", "Jürgen", "жучка", "a,b=c", "\U0001f321"])
def test_names_that_a_broker_accepts(file: Path, name: str) -> None:
    assert command(file, name, "--stdin", typed="pencil\n").output == said(f"{name} added", file)
    assert list(users_of(file).slot_of) == [name.encode()]
    assert _lets_in(file, "pencil", name) and not _lets_in(file, "pen", name)
    assert command(file, name, "-D").output == said(f"{name} deleted", file, "from")


def test_a_new_user_is_appended_and_an_existing_one_replaced(file: Path) -> None:
    file.write_bytes(OTHERS)
    assert command(file, "user", "--stdin", typed="one").output == said("user added", file)
    assert file.read_bytes().startswith(OTHERS)
    before = lines(file)
    assert command(file, "bob", "--stdin", typed="two").output == said("bob changed", file)
    after = lines(file)
    assert len(before) == len(after) == 5
    assert [at for at in range(5) if before[at] != after[at]] == [2]
    assert _lets_in(file, "two", "bob")


def test_the_last_line_may_lack_its_newline(file: Path) -> None:
    file.write_bytes(OTHERS.removesuffix(b"\n"))
    command(file, "user", "--stdin", typed="one")
    assert file.read_bytes().startswith(OTHERS + b"user:")


def test_an_empty_file_has_no_users(file: Path) -> None:
    file.touch()
    command(file, "user", "--stdin", typed="one")
    assert len(lines(file)) == 1


def test_each_line_has_its_own_salt(file: Path) -> None:
    salts = set()
    for _ in range(3):
        command(file, "user", "--stdin", typed="one")
        salts.add(lines(file)[0].split(b":")[2])
    assert len(salts) == 3
    assert {len(salt) for salt in salts} == {24}


def test_iterations(file: Path) -> None:
    command(file, "user", "--stdin", "--iterations", "5000", typed="one")
    assert lines(file)[0].startswith(b"user:5000:")
    assert _lets_in(file, "one")


def test_delete(file: Path) -> None:
    file.write_bytes(OTHERS + LINE + b"\n")
    assert command(file, "user", "--delete").output == said("user deleted", file, "from")
    assert file.read_bytes() == OTHERS
    done = command(file, "user", "--delete")
    assert (done.exit_code, done.output) == (1, f"Error: {file} has no user user\n")
    assert file.read_bytes() == OTHERS


def test_many_iterations_are_warned_of(file: Path) -> None:
    done = command(file, "user", "--stdin", "--iterations", "1000001", typed="one")
    assert done.exit_code == 0
    assert "1,000,001 iterations: a first login takes" in done.output
    assert "Warning" not in command(file, "user", "--stdin", typed="one").output


@pytest.mark.parametrize(
    ("before", "after"),
    [(0o600, 0o600), (0o640, 0o640), (0o440, 0o440), (0o644, 0o640), (0o666, 0o640)],
)
def test_who_could_read_it_still_can_but_not_others(file: Path, before: int, after: int) -> None:
    file.write_bytes(OTHERS)
    file.chmod(before)
    command(file, "user", "--stdin", typed="one")
    assert file.stat().st_mode & 0o777 == after
    assert [each.name for each in file.parent.iterdir()] == ["users"]


def test_a_new_file_is_for_its_owner(file: Path) -> None:
    command(file, "user", "--stdin", typed="one")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_group_that_it_cannot_keep_is_not_replaced(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is of a group in which the user is not."""

    def forbidden(*_: object) -> None:
        raise PermissionError

    file.write_bytes(OTHERS)
    file.chmod(0o640)
    was = file.stat()
    monkeypatch.setattr(os, "chown", forbidden)
    monkeypatch.setattr(passwd, "_group", lambda path: 1 if path == file else was.st_gid)
    command(file, "user", "--stdin", typed="one")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("args", [("user", "--stdin"), ("user", "--delete"), ("--list",)])
def test_what_is_not_a_regular_file_is_not_read_and_not_replaced(
    file: Path, tmp_path: Path, args: tuple[str, ...]
) -> None:
    """It may be a device; here it is a pipe, whose reader would wait for ever."""
    os.mkfifo(file)
    link = tmp_path / "link"
    link.symlink_to(file)
    for path in (file, link):
        done = command(path, *args, typed="one")
        assert (done.exit_code, done.output) == (1, f"Error: {path} is not a regular file\n")
        assert path.is_fifo()


def test_a_byte_order_mark_is_dropped(file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf" + LINE + b"\n")
    assert command(file, "user", "--stdin", typed="one").output == said("user changed", file)
    assert len(lines(file)) == 1
    assert _lets_in(file, "one")


def test_a_symbolic_link_stays(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    command(link, "user", "--stdin", typed="one")
    assert link.is_symlink()
    assert len(lines(file)) == 1


def test_a_write_that_fails_leaves_the_old_file(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    file.write_bytes(OTHERS)
    monkeypatch.setattr(os, "fsync", fail)
    done = command(file, "user", "--stdin", typed="one")
    assert (done.exit_code, done.output) == (1, f"Error: {file}: {os.strerror(errno.ENOSPC)}\n")
    assert file.read_bytes() == OTHERS
    assert [each.name for each in file.parent.iterdir()] == ["users"]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("a:b", "contain :"),
        ("#a", "begin with #"),
        ("", "1 to 100 bytes"),
        ("a" * 101, "1 to 100 bytes"),
        ("ü" * 51, "1 to 100 bytes"),
        (" a", "begin or end with a blank"),
        ("a\n", "begin or end with a blank"),
        ("a\tb", "unprintable"),
        ("a\u00adb", "unprintable"),
        ("\udcff", "unprintable"),
        ("Ju\u0308rgen", "SASLprep"),
    ],
)
@pytest.mark.parametrize("option", ["--stdin", "--delete"])
def test_wrong_names(file: Path, name: str, complaint: str, option: str) -> None:
    file.write_bytes(OTHERS)
    done = command(file, option, "--", name, typed="secret")
    assert done.exit_code == 1
    assert complaint in done.output
    assert file.read_bytes() == OTHERS


@pytest.mark.parametrize(
    ("password", "complaint"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"sec\nret", "unprintable"),
        (b"sec\tret", "unprintable"),
        (b"sec\0ret", "unprintable"),
        (b"sec\xffret", "not UTF-8"),
        ("sec\u00adret".encode(), "unprintable"),
        ("sec\ufe0fret".encode(), "unprintable"),
        ("secre\u0301t".encode(), "SASLprep"),
        ("sec\u2168ret".encode(), "SASLprep"),
    ],
)
def test_wrong_passwords(file: Path, password: bytes, complaint: str) -> None:
    done = command(file, "user", "--stdin", typed=password)
    assert done.exit_code == 1
    assert complaint in done.output
    assert "sec" not in done.output
    assert not file.exists()


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("--iterations", "4095"), "4095 is not in the range"),
        (("--delete", "--stdin"), "--delete takes no password"),
        (("third",), "unexpected extra argument"),
    ],
)
def test_wrong_usage(file: Path, args: tuple[str, ...], complaint: str) -> None:
    done = command(file, "user", *args)
    assert done.exit_code == 2
    assert complaint in done.output


@pytest.mark.parametrize("option", ["--stdin", "--delete"])
def test_a_file_of_another_format_is_not_changed(file: Path, option: str) -> None:
    content = b"# accounts\nuser:x:0:0:root:/root:/bin/sh\n"
    file.write_bytes(content)
    done = command(file, "user", option, typed="one")
    assert done.exit_code == 1
    assert done.output.startswith(f"Error: {file}:2: expected ")
    assert file.read_bytes() == content


def test_a_missing_file_or_folder_is_named(file: Path) -> None:
    done = command(file, "user", "--delete")
    missing = os.strerror(errno.ENOENT)
    assert (done.exit_code, done.output) == (1, f"Error: {file}: {missing}\n")
    deep = file / "users"
    done = command(deep, "user", "--stdin", typed="one")
    assert (done.exit_code, done.output) == (1, f"Error: {deep}: {missing}\n")


def _lets_in(file: Path, password: str, name: str = "user") -> bool:
    """Whether a client with this password can log in."""
    server, client = Scram(users_of(file)), Exchange(name, password)
    _, challenge = server.auth(1, METHOD.encode(), client.first())
    code, end = server.auth(1, METHOD.encode(), client.final(challenge))
    if not code:
        client.check(end)
    return not code

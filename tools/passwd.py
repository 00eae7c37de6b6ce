"""`slotmq passwd`: adds, changes, deletes and lists users in a password_file.

A user's line has the keys that verify a password, in CONNECT and by SCRAM-SHA-256, and not the
password. All other lines stay as they are, also those of mosquitto_passwd. The file is replaced as
a whole. A new one has mode 0600; one that was there keeps who may read it, except others.
"""

import binascii
import codecs
import hashlib
import hmac
import os
import stat
import stringprep
import tempfile
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import Any

from .errors import ToolError

# RFC 7677 asks for 4096 or more. The broker computes them at a client's first login, and for SCRAM
# the client at each one; both may be microcontrollers. So the default is the minimum.
ITERATIONS = 4096
ITERATIONS_MAX = 10_000_000
# Above these a first login takes some seconds on a computer, and 10 s on a board.
MANY_ITERATIONS = 1_000_000
MANY_ON_BOARD = 10_000
SLOW = (
    "Warning: {} iterations: a first login takes a second for each million on a computer, and for "
    "each thousand on a board; other logins wait for it"
)
_SALT_BYTES = 16
_USERS_MAX = 65_000  # of `limit users`
_SALTS = b"#salts:"  # see access/users_file.py
_NAME_MAX = 100  # bytes; fits into a client's first message, even if each is sent as =2C


def put(file: Path, name: str, password: str, iterations: int = ITERATIONS) -> bool:
    """Add the user's line, or replace it; -> True if it existed.

    ToolError: the name or password cannot be used, or the file cannot be read or written."""
    check(name, password)
    new = line(name, password, iterations, os.urandom(_SALT_BYTES))
    lines = _read(file, may_be_new=True)
    at = _find(lines, name)
    if at is None:
        lines.append(new)
    else:
        lines[at] = new
    if not any(each.startswith(_SALTS) for each in lines):
        lines.append(_SALTS + binascii.b2a_base64(os.urandom(32), newline=False))
    _write(file, lines)
    return at is not None


def delete(file: Path, name: str) -> None:
    """Delete the user's line. ToolError: there is none, or the file cannot be changed."""
    if ":" in name or name[:1] == "#":
        check_name(name)
    lines = _read(file)
    at = _find(lines, name)
    if at is None:
        check_name(name)
        raise ToolError(f"{file} has no user {name}")
    del lines[at]
    _write(file, lines)


def users(file: Path) -> list[tuple[str, str]]:
    """Each user's name, and what its line works with. ToolError: the file cannot be read."""
    found = []
    for row in _users(file):
        kind = "CONNECT, SCRAM" if len(row) > 2 else "CONNECT; a line of mosquitto_passwd"
        found.append((row[0].decode(errors="backslashreplace"), kind))
    return found


def line(name: str, password: str, iterations: int, salt: bytes) -> bytes:
    """The line of a user with this password, without its newline [RFC 5802, 3]."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    fields = [binascii.b2a_base64(each, newline=False) for each in (salt, stored, server)]
    return b":".join([name.encode(), b"%d" % iterations, *fields])


def check(name: str, password: str) -> None:
    """ToolError: the name or the password cannot be used."""
    check_name(name)
    _check_password(password)


def check_name(name: str) -> None:
    """ToolError: the name has characters with a meaning in the file, or others that clients may
    prepare (SASLprep) differently."""
    if not name or len(name.encode(errors="surrogatepass")) > _NAME_MAX:
        raise ToolError(f"a name has 1 to {_NAME_MAX} bytes")
    if ":" in name or name[0] == "#" or name != name.strip():
        raise ToolError("a name must not contain :, begin with #, or begin or end with a blank")
    _check_prepared(name, "a name")


def _check_password(password: str) -> None:
    if not password:
        raise ToolError("the password is empty")
    _check_prepared(password, "the password")


def _check_prepared(text: str, what: str) -> None:
    # If SASLprep [RFC 4013] changed it, clients with and without it would differ.
    if not text.isprintable() or any(map(stringprep.in_table_b1, text)):
        raise ToolError(f"{what} has unprintable characters")
    if unicodedata.normalize("NFKC", text) != text:
        raise ToolError(f"{what} has characters that SASLprep would change")


def _read(file: Path, *, may_be_new: bool = False) -> list[bytes]:
    """The file's lines. ToolError: the broker could not read it."""
    if may_be_new and not file.exists():
        return []
    _users(file)
    lines = file.read_bytes().removeprefix(codecs.BOM_UTF8).split(b"\n")
    return lines if lines[-1] else lines[:-1]


def _users(file: Path) -> list[Any]:
    from slotmq.access import mosquitto_cpython, users_file  # imports the broker: not at the top

    try:
        if not stat.S_ISREG(file.stat().st_mode):  # it may be a device, which would be replaced
            raise ToolError(f"{file} is not a regular file")
        rows: list[Any] = users_file.read(str(file), _USERS_MAX, mosquitto_cpython.parse)
    except ValueError as error:
        raise ToolError(str(error)) from None
    return rows


def _find(lines: list[bytes], name: str) -> int | None:
    begin = f"{name}:".encode(errors="surrogateescape")
    found = (at for at, each in enumerate(lines) if each.strip().startswith(begin))
    return next(found, None)


def _write(file: Path, lines: list[bytes]) -> None:
    """Replace the file as a whole."""
    file = file.resolve()  # a symbolic link stays
    try:
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)  # mode 0600
        new = Path(name)
        try:
            with os.fdopen(handle, "wb") as out:
                out.writelines(each + b"\n" for each in lines)
                out.flush()
                os.fsync(handle)
            with suppress(FileNotFoundError):
                _like(file, new)
            new.replace(file)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise ToolError(f"{file}: {error.strerror}") from None


def _like(old: Path, new: Path) -> None:
    # The same owner and group where that is permitted, and the same readers. If the group cannot
    # be kept, none may read it.
    was = old.stat()
    with suppress(PermissionError):
        os.chown(new, -1, was.st_gid)
        os.chown(new, was.st_uid, -1)
    new.chmod(was.st_mode & (0o640 if _group(new) == _group(old) else 0o600))


def _group(file: Path) -> int:
    return file.stat().st_gid

"""`slotmq passwd`: adds, changes, deletes and lists users in a password_file.

A user's line has the keys that verify a password, in CONNECT and by SCRAM-SHA-256, and not the
password. All other lines stay as they are, also those of mosquitto_passwd. The file is replaced as
a whole, with mode 0600.
"""

import binascii
import hashlib
import hmac
import os
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
_SALT_BYTES = 16
_USERS_MAX = 65_000  # of `limit users`
_NAME_MAX = 100  # fits into a client's first message, even if each character is sent as =2C


def put(file: Path, name: str, password: str, iterations: int = ITERATIONS) -> bool:
    """Add the user's line, or replace it; -> True if it existed.

    ToolError: the name or password cannot be used, or the file cannot be read or written."""
    check_name(name)
    _check_password(password)
    new = line(name, password, iterations, os.urandom(_SALT_BYTES))
    lines = _read(file, may_be_new=True)
    at = _find(lines, name)
    if at is None:
        lines.append(new)
    else:
        lines[at] = new
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


def check_name(name: str) -> None:
    """ToolError: the name has characters with a meaning in the file, or is not plain ASCII.

    Clients may prepare (SASLprep) other characters differently."""
    if not name or len(name) > _NAME_MAX:
        raise ToolError(f"a name has 1 to {_NAME_MAX} characters")
    if ":" in name or name[0] == "#":
        raise ToolError("a name must not contain : or begin with #")
    if not all("!" <= each <= "~" for each in name):
        raise ToolError("a name must be printable ASCII without blanks")


def _check_password(password: str) -> None:
    # If SASLprep [RFC 4013] changed it, clients with and without it would differ.
    if not password:
        raise ToolError("the password is empty")
    if not password.isprintable() or any(map(stringprep.in_table_b1, password)):
        raise ToolError("the password has unprintable characters")
    if unicodedata.normalize("NFKC", password) != password:
        raise ToolError("the password has characters that SASLprep would change")


def _read(file: Path, *, may_be_new: bool = False) -> list[bytes]:
    """The file's lines. ToolError: the broker could not read it."""
    if may_be_new and not file.exists():
        return []
    _users(file)
    lines = file.read_bytes().split(b"\n")
    return lines if lines[-1] else lines[:-1]


def _users(file: Path) -> list[Any]:
    from slotmq.access import mosquitto_cpython, users_file  # imports the broker: not at the top

    try:
        rows: list[Any] = users_file.read(str(file), _USERS_MAX, mosquitto_cpython.parse)
    except ValueError as error:
        raise ToolError(str(error)) from None
    except OSError as error:
        raise ToolError(f"{file}: {error.strerror}") from None
    return rows


def _find(lines: list[bytes], name: str) -> int | None:
    begin = f"{name}:".encode(errors="surrogateescape")
    found = (at for at, each in enumerate(lines) if each.strip().startswith(begin))
    return next(found, None)


def _write(file: Path, lines: list[bytes]) -> None:
    """Replace the file as a whole; it keeps its owner."""
    file = file.resolve()  # a symbolic link stays
    try:
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)  # mode 0600
        new = Path(name)
        try:
            with os.fdopen(handle, "wb") as out:
                out.writelines(each + b"\n" for each in lines)
                out.flush()
                os.fsync(handle)
            with suppress(FileNotFoundError, PermissionError):
                os.chown(new, file.stat().st_uid, file.stat().st_gid)
            new.replace(file)
        finally:
            new.unlink(missing_ok=True)
    except OSError as error:
        raise ToolError(f"{file}: {error.strerror}") from None

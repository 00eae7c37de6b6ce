"""`slotmq passwd`: a user's line in the file that slotmq.v5.scram reads.

The line has what checks a SCRAM-SHA-256 password, and not the password. All other
lines stay as they are; the file is replaced as a whole, and only its owner may read it.
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

from .errors import ToolError

# RFC 7677 asks for 4096 or more. It is the client that computes them, at each login and
# within the broker's connect_timeout, and a client may be a microcontroller. So the
# default is the least; whoever's clients are computers can ask for more.
ITERATIONS = 4096
ITERATIONS_MAX = 10_000_000
_SALT_BYTES = 16
_NAME_MAX = 100  # a client's first message has its room, even if each is sent as =2C


def put(file: Path, name: str, password: str, iterations: int = ITERATIONS) -> bool:
    """Add the user's line, or replace it: True."""
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
    """Take the user's line out."""
    check_name(name)
    lines = _read(file)
    at = _find(lines, name)
    if at is None:
        raise ToolError(f"{file} has no user {name}")
    del lines[at]
    _write(file, lines)


def line(name: str, password: str, iterations: int, salt: bytes) -> bytes:
    """What the file says of a user with this password [RFC 5802, 3]."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    fields = [binascii.b2a_base64(each, newline=False) for each in (salt, stored, server)]
    return b":".join([name.encode(), b"%d" % iterations, *fields])


def check_name(name: str) -> None:
    """ToolError for the file's own marks, and for what clients might prepare differently."""
    if not name or len(name) > _NAME_MAX:
        raise ToolError(f"a name has 1 to {_NAME_MAX} characters")
    if ":" in name or name[0] == "#":
        raise ToolError("a name has no : in it and no # at its beginning")
    if not all("!" <= each <= "~" for each in name):
        raise ToolError("a name is printable ASCII without blanks")


def _check_password(password: str) -> None:
    """One that SASLprep [RFC 4013] would change is two, for clients with it and without."""
    if not password:
        raise ToolError("the password is empty")
    if not password.isprintable() or any(map(stringprep.in_table_b1, password)):
        raise ToolError("the password has characters that cannot be printed")
    if unicodedata.normalize("NFKC", password) != password:
        raise ToolError("the password has characters that clients would prepare (SASLprep)")


def _read(file: Path, *, may_be_new: bool = False) -> list[bytes]:
    """The file's lines, if it is one that the broker would read."""
    from slotmq.v5 import scram  # and the broker with it, which no other command needs

    try:
        scram.Scram(file)
        lines = file.read_bytes().split(b"\n")
    except ValueError as error:
        raise ToolError(str(error)) from None
    except OSError as error:
        if may_be_new and isinstance(error, FileNotFoundError):
            return []
        raise ToolError(f"{file}: {error.strerror}") from None
    return lines if lines[-1] else lines[:-1]


def _find(lines: list[bytes], name: str) -> int | None:
    begin = f"{name}:".encode()
    found = (at for at, each in enumerate(lines) if each.strip().startswith(begin))
    return next(found, None)


def _write(file: Path, lines: list[bytes]) -> None:
    """All or nothing: a new file in the place of the old one, with its owner."""
    file = file.resolve()  # a link stays one
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

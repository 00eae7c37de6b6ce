"""Certificates and keys of a board's listeners: what of them is copied there, and as what.

Boards take a certificate and a key in DER, those with an RP2040 or RP2350 up to MicroPython 1.28
nothing else; so that is what they get. A CA's key is never copied.
"""

import base64
import re
from pathlib import Path
from typing import Any

from slotmq.platform import tls_context_cpython as tls

from ..errors import ToolError

KEYS = ("certfile", "keyfile", "cafile")
_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\s+([A-Za-z0-9+/=\s]+?)-----END \1-----")
_IS_CA = re.compile(rb"\x55\x1d\x13(?:\x01\x01\xff)?\x04.\x30.\x01\x01\xff", re.DOTALL)
_P256 = bytes.fromhex("06082a8648ce3d030107")
_ONE_ONLY = "expected one certificate in PEM, which a board takes without a chain"


def on_board(key: str, file: Path) -> bytes:
    """The content that the board gets of the file that `key` names. ToolError: it is wrong."""
    blocks = _BLOCK.findall(file.read_bytes())
    wanted = b"PRIVATE KEY" if key == "keyfile" else b"CERTIFICATE"
    found = [base64.b64decode(text) for name, text in blocks if name.endswith(wanted)]
    if key != "keyfile":
        if len(found) != 1:
            raise ToolError(f"{file}: {_ONE_ONLY}")
        if key == "certfile" and _IS_CA.search(found[0]):
            raise ToolError(
                f"{file}: the certificate of a CA, whose key belongs on no board: expected that of"
                " a server, such as `slotmq certs` makes"
            )
    elif len(found) != 1 or _P256 not in found[0]:
        raise ToolError(
            f"{file}: expected one ECDSA P-256 key in PEM without a password, such as `slotmq"
            " certs` makes: with RSA a board takes seconds for each client"
        )
    return found[0]


def check(name: str, options: Any, paths: dict[str, Path]) -> list[str]:
    """Warnings about a listener's files. ToolError: they do not fit one another."""
    found = {**options, **{key: str(path) for key, path in paths.items()}, "ciphers": None}
    _, errors, warnings = tls.make_context(found)
    if errors:
        raise ToolError("\n".join(f"{name}: {key}: expected {text}" for key, text in errors))
    return [f"{key}: {text}" for key, text in warnings]

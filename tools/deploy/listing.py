"""What a board is asked about its files, and what its answer is: the lines that are Python's
values. Others are of a log, which an ESP32's own code prints on the same line."""

import ast
from contextlib import suppress
from typing import Any

_WALK = """
import os
def walk(folder):
    count = 0
    for name, kind, *_ in os.ilistdir(folder or "/"):
        path = folder + "/" + name
        if kind & 0x4000:
            count += walk(path)
        else:
            print(repr((path, of(path))))
            count += 1
    return count
"""
HASHES = f"""
{_WALK}
import hashlib
def of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while True:
            piece = file.read(512)
            if not piece:
                return digest.digest().hex()
            digest.update(piece)
print(walk(""))
"""
SIZES = f"""
{_WALK}
def of(path):
    return os.stat(path)[6]
print(walk(""))
"""


def literals(text: str) -> list[Any]:
    """The values."""
    found = []
    for line in text.splitlines():
        with suppress(ValueError, SyntaxError):
            found.append(ast.literal_eval(line))
    return found


def rows(text: str) -> dict[str, Any] | None:
    """Of HASHES and SIZES: what is told of each file, by its path; None: not of all of them."""
    found = literals(text)
    told = [each for each in found if isinstance(each, tuple) and len(each) == 2]
    return dict(told) if found and found[-1] == len(told) else None

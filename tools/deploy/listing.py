"""MicroPython code that lists a board's files, and the parser of what it prints.

Each printed line is a Python literal. All other lines are ignored: on an ESP32 the system prints
its log on the same serial line.
"""

import ast
from contextlib import suppress
from typing import Any

NO_LITERAL = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
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
    """The values of all lines that are Python literals."""
    found = []
    for line in text.splitlines():
        with suppress(*NO_LITERAL):
            found.append(ast.literal_eval(line))
    return found


def by_path(text: str) -> dict[str, Any] | None:
    """Parse the output of HASHES or SIZES: a hash or a size by path; None: lines are missing."""
    found = literals(text)
    files = [each for each in found if isinstance(each, tuple) and len(each) == 2
             and isinstance(each[0], str) and isinstance(each[1], str | int)]  # fmt: skip
    return dict(files) if found and found[-1] == len(files) else None

"""Reads a scenario from TOML; every wrong key is reported, one line each."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..errors import ToolError
from .model import Clients, Link, Persistence, Publish, Scenario, Table, Will

_TABLES: dict[Any, type[Table]] = {
    "clients": Clients,
    "publish": Publish,
    "will": Will,
    "links": Link,
    "persistence": Persistence,
}
_MESSAGES = {
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "list_type": "must be a list",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "too_short": "must have at least one table",
}


class BadScenario(ToolError):
    """The scenario cannot be simulated: each line names a key and what is wrong with it."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def read(path: Path, **overrides: Any) -> Scenario:
    """The scenario of a file; keyword arguments override keys of its top level."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise BadScenario([f"cannot be read: {error}"]) from None
    return read_text(text, **overrides)


def read_text(text: str, **overrides: Any) -> Scenario:
    """The same from the file's text."""
    try:
        return Scenario.model_validate(tomllib.loads(text) | overrides)
    except tomllib.TOMLDecodeError as error:
        raise BadScenario([f"not TOML: {error}"]) from None
    except ValidationError as error:
        raise BadScenario(list(_lines(error))) from None


def _lines(errors: ValidationError) -> Iterator[str]:
    for error in errors.errors():
        path = re.sub(r"\.(\d+)", r"[\1]", ".".join(map(str, error["loc"])))
        problem = error["ctx"]["error"].args[0] if error["type"] == "value_error" else ""
        if isinstance(problem, list):  # of Table.problems
            yield from (f"{path}.{each}".lstrip(".") for each in problem)
        elif error["type"] == "extra_forbidden":
            *tables, name = error["loc"]
            table = next((_TABLES[at] for at in reversed(tables) if at in _TABLES), Scenario)
            yield f"{path}: {unknown_key(str(name), table.model_fields)}"
        elif error["type"] == "missing":
            yield f"{path}: is missing; see slotmq sim --keys"
        else:
            text = re.sub(r"^\w+ should", "must", error["msg"])
            message = problem or _MESSAGES.get(error["type"], text)
            yield f"{path}: {message}, not {_short(error['input'])}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def unknown_key(name: str, known: Iterable[str]) -> str:
    """What to say of an unknown key, with the known one that looks most like it."""
    near = difflib.get_close_matches(name, known, 1)
    return "no such key; " + (f"did you mean {near[0]}?" if near else "see slotmq sim --keys")

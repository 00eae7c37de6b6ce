"""The tables of keys and limits in docs/configure.md, which slotmq_dev.figures writes."""

import re
from pathlib import Path

from slotmq.config import capacities
from slotmq_tools.config import keys
from slotmq_tools.config.check import preset

from .figures import table


def tables() -> dict[str, str]:
    """The tables by marker."""
    served = [
        [
            f"`{key.name}`",
            key.ours,
            key.mosquittos if key.mosquittos != key.ours else "",
            "yes" if key.reloads else "",
            key.text,
        ]
        for key in keys.served()
    ]
    others = [[", ".join(names), status, text] for status, text, names in _groups()]
    return {
        "keys": _table(["key", "default", "mosquitto", "reload", ""], served),
        "other-keys": _table(["key", "", ""], others),
        "limits": _table(["limit", "computer", "Pico W", "least", "most", ""], _limits()),
    }


def _table(columns: list[str], rows: list[list[str]]) -> str:
    return table(columns, rows, numbers=False).replace("  ", " ")


def _limits() -> list[list[str]]:
    """What each limit means is in the comment above capacities.FIELDS."""
    meanings: dict[str, str] = {}
    name = ""
    for line in Path(capacities.__file__).read_text().splitlines():
        if found := re.match(r"#   ([a-z_0-9]+) +(.*)", line):
            name = found[1]
            meanings[name] = found[2]
        elif name and line.startswith("#    "):
            meanings[name] += " " + line[1:].strip()
    here, board = preset("HOST"), preset("RPI_PICO_W")
    rows = []
    for name, _, least, most in capacities.fields():
        numbers = [f"{n:,}" for n in (getattr(here, name), getattr(board, name), least, most)]
        rows.append([f"`{name}`", *numbers, meanings[name]])
    return rows


def _groups() -> list[tuple[str, str, list[str]]]:
    # keys with the same status and text, which are neighbours, in one row
    found: list[tuple[str, str, list[str]]] = []
    for key in keys.others():
        name = f"`{key.name}`" + (f" (not `{key.accepted}`)" if key.accepted else "")
        if not found or found[-1][:2] != (key.status, key.text):
            found.append((key.status, key.text, []))
        found[-1][2].append(name)
    return found

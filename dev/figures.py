"""What tools write into documents: texts between `<!-- NAME:begin -->` and `<!-- NAME:end -->`.

    python -m slotmq_dev.figures

writes those that the sources and docs/figures.json tell: the tables of keys, and what a benchmark
has found. The tools that measure write there too: `bench`, `bench.instructions` into
docs/figures.json; `heap`, `wear` and `emulator.cycles` their own tables.
"""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from slotmq.config import capacities
from slotmq_tools.config import keys
from slotmq_tools.config.check import preset
from slotmq_tools.errors import ToolError

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs/figures.json"


def get(text: str, name: str) -> str:
    """What stands between the markers of this name. ToolError: they are not there, once each."""
    return _parts(text, name)[1].strip("\n")


def put(text: str, name: str, body: str) -> str:
    """The text with this between the markers. ToolError: they are not there, once each."""
    before, _, after = _parts(text, name)
    return f"{before}\n{body}\n{after}"


def write(file: Path, **bodies: str) -> None:
    """Write each of them between the markers of its name."""
    text = file.read_text()
    for name, body in bodies.items():
        text = put(text, name, body)
    file.write_text(text)


def _parts(text: str, name: str) -> tuple[str, str, str]:
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, _, rest = text.partition(begin)
    body, _, after = rest.partition(end)
    if (text.count(begin), text.count(end), rest.count(end)) != (1, 1, 1):
        raise ToolError(f"{begin} and {end} must stand around the text, once")
    return before + begin, body, end + after


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True) -> str:
    """A table in Markdown; numbers: of all columns but the first."""
    rule = ["---", *(["---:" if numbers else "---"] * (len(columns) - 1))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (columns, rule, *rows))


def measured() -> dict[str, Any]:
    """docs/figures.json."""
    found: dict[str, Any] = json.loads(DATA.read_text())
    return found


def keep(part: str, found: dict[str, Any]) -> None:
    """Add these figures to a part of docs/figures.json, and write what is made of them."""
    data = measured()
    data[part] = {**data[part], **found}
    DATA.write_text(json.dumps(data, indent=1) + "\n")
    main()


def _keys() -> dict[str, str]:
    # The tables of keys and limits in docs/configure.md
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
        "keys": _texts(["key", "default", "mosquitto", "reload", ""], served),
        "other-keys": _texts(["key", "", ""], others),
        "limits": _texts(["limit", "computer", "Pico W", "least", "most", ""], _limits()),
    }


def _texts(columns: list[str], rows: list[list[str]]) -> str:
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


def made() -> dict[str, dict[str, str]]:
    """The texts that this program writes: by document and marker."""
    from .bench import page

    return {"docs/configure.md": _keys(), **page.texts(measured())}


def main() -> None:
    """Write them."""
    for name, bodies in made().items():
        write(ROOT / name, **bodies)


if __name__ == "__main__":
    main()

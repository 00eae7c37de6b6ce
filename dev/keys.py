"""Writes the tables of keys and limits in docs/configure.md, between their markers."""

import re
from pathlib import Path

import click

from slotmq.config import capacities
from slotmq_tools.config import keys
from slotmq_tools.config.check import preset

_ROOT = Path(__file__).resolve().parents[1]
PAGE = _ROOT / "docs/configure.md"


def written(text: str) -> str:
    """The page with its tables as they must be."""
    served = ["| key | default | mosquitto | reload | |", "|---|---|---|---|---|"]
    for key in keys.served():
        theirs = key.mosquittos if key.mosquittos != key.ours else ""
        reload = "yes" if key.reloads else ""
        served.append(_row(f"`{key.name}`", key.ours, theirs, reload, key.text))
    others = ["| key | | |", "|---|---|---|"]
    for status, text_of, names in _groups():
        others.append(_row(", ".join(names), status, text_of))
    text = _between(text, "keys", served)
    text = _between(text, "other-keys", others)
    return _between(text, "limits", limits())


def limits() -> list[str]:
    """The table of limits; what each means is in the comment above capacities.FIELDS."""
    meanings: dict[str, str] = {}
    name = ""
    for line in Path(capacities.__file__).read_text().splitlines():
        if found := re.match(r"#   ([a-z_0-9]+) +(.*)", line):
            name = found[1]
            meanings[name] = found[2]
        elif name and line.startswith("#    "):
            meanings[name] += " " + line[1:].strip()
    here, board = preset("HOST"), preset("RPI_PICO_W")
    rows = ["| limit | computer | Pico W | least | most | |", "|---|---|---|---|---|---|"]
    for name, _, least, most in capacities.fields():
        numbers = [f"{n:,}" for n in (getattr(here, name), getattr(board, name), least, most)]
        rows.append(_row(f"`{name}`", *numbers, meanings[name]))
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


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells).replace("  ", " ") + " |"


def _between(text: str, marker: str, rows: list[str]) -> str:
    before, begin, rest = text.partition(f"<!-- {marker}:begin -->\n")
    _, end, after = rest.partition(f"<!-- {marker}:end -->")
    if not end:
        raise click.ClickException(f"{PAGE}: no marker {marker}")
    return before + begin + "\n".join(rows) + "\n" + end + after


@click.command()
def main() -> None:
    """Write the tables of docs/configure.md."""
    PAGE.write_text(written(PAGE.read_text()))


if __name__ == "__main__":
    main()

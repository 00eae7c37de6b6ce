"""Runs `slotmq sim`: reads the scenario, simulates it, prints the result, writes a report."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources, util
from pathlib import Path
from textwrap import fill
from typing import Any

import click
from pydantic.fields import FieldInfo

from slotmq.config.capacities import fields

from .. import progress
from ..errors import ToolError
from . import model, report
from .broker_config import KEYS
from .outcome import Outcome, simulate
from .read import BadScenario, read
from .units import time_text

_FORMATS = (".html", ".png")


def run(
    file: Path, overrides: dict[str, Any], out: Path | None, *, as_json: bool, quiet: bool
) -> None:
    """Simulate the scenario of a file, with some keys overridden, and print the result."""
    if out:
        _check_out(out)
    try:
        outcome = _run(
            file, {k: value for k, value in overrides.items() if value is not None}, quiet
        )
    except BadScenario as error:
        for line in error.lines:
            click.echo(f"Error: {file}: {line}", err=True)
        sys.exit(2)
    click.echo(_text(outcome, as_json, quiet), nl=False)
    if out:
        _write(outcome, out)


def _run(file: Path, overrides: dict[str, Any], quiet: bool) -> Outcome:
    scenario = read(file, **overrides)
    start = time.monotonic()
    with _bar(f"{file.name}, {time_text(scenario.duration)}", quiet) as update:
        outcome = simulate(scenario, update)
    took = time.monotonic() - start
    if not quiet:
        rate = scenario.duration / 1000 / took
        click.echo(f"{took:.1f} s, {rate:,.0f} simulated seconds per second\n", err=True)
    return outcome


@contextmanager
def _bar(label: str, quiet: bool) -> Iterator[Any]:
    if quiet:
        yield lambda percent: None
    else:
        with progress.bar(label) as update:
            yield update


def _text(outcome: Outcome, as_json: bool, quiet: bool) -> str:
    if as_json:
        return json.dumps(outcome.as_json(), indent=2) + "\n"
    return report.summary(outcome) + "\n" if quiet else report.text(outcome)


def _check_out(out: Path) -> None:
    """Is checked before the simulation."""
    if out.suffix not in _FORMATS:
        raise click.UsageError(f"--out: expected a name that ends in {' or '.join(_FORMATS)}")
    if not out.parent.is_dir():
        raise click.UsageError(f"--out: there is no folder {out.parent}")
    if not all(map(util.find_spec, ("jinja2", "matplotlib"))):
        raise ToolError("--out needs matplotlib and Jinja2: pip install 'slotmq[picture]'")


def _write(outcome: Outcome, out: Path) -> None:
    from .. import page
    from . import picture

    html = out.suffix == ".html"
    page.write(out, picture.html(outcome).encode() if html else picture.png(outcome))


def example() -> str:
    """An example of a scenario."""
    return resources.files(__package__).joinpath("example.toml").read_text().rstrip()


def keys() -> str:
    """All keys of a scenario, with descriptions and defaults."""
    return "\n".join(_keys())


def _keys() -> Iterator[str]:
    yield 'Times are numbers of seconds, or "20 ms", "10 s", "5 min", "1 h", "2 d".'
    yield 'Sizes are numbers of bytes, or "4 KB", "1 MB".\n'
    for title, table in model.TABLES.items():
        yield f"{title}: {table.__doc__}"
        for name, key in table.model_fields.items():
            yield f"  {name:16}{key.description}{_default(key)}"
        yield ""
    yield _listed("[limits]", [name for name, *_ in fields()])
    yield _listed("[settings]", KEYS)


def _listed(title: str, names: list[str]) -> str:
    return fill(f"{title}: {', '.join(names)}", report.WIDTH, subsequent_indent="  ") + "\n"


def _default(key: FieldInfo) -> str:
    if key.is_required():
        return " (required)"
    if key.default in (None, "", [], {}):
        return ""
    return f" [default: {json.dumps(key.default)}]"

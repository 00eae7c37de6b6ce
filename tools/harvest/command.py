"""`slotmq harvest`: its options, and what it says of a harvest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..deploy.options import Address, login
from ..deploy.options import port as port_option
from ..deploy.options import user as user_option
from ..errors import ToolError, shown
from ..progress import bar

if TYPE_CHECKING:
    from .collect import Done, Report
    from .manifest import Manifest
    from .network import Ring

_TOLD = 5  # lines of each complaint


@click.command(short_help="Fetch what boards have recorded, over the network or USB.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--broker", "address", type=Address(), help="Ask the running broker there.")
@port_option
@click.option(
    "--from",
    "copied",
    metavar="DIR",
    help="Take the segments (*.seg) that were copied into DIR.",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)
@user_option
@click.option("--board", "boards", multiple=True, metavar="ID", help="Only this one's [all].")
@click.option("--set-time", is_flag=True, help="Tell the boards what time it is, first.")
@click.option("--delete", is_flag=True, help="With --port: remove there what is safe here.")
@click.option("--location", metavar="PATH", help="With --port: the ring's folder [as configured].")
@click.option("--compact", "compacts", is_flag=True, help="Small bundles into 8 to 32 MB.")
def harvest(
    folder: Path, address: tuple[str, int] | None, device: str | None, copied: Path | None,
    user: str | None, boards: tuple[str, ...], set_time: bool, delete: bool, location: str | None,
    compacts: bool,
) -> None:  # fmt: skip
    """Fetch what boards have recorded into FOLDER.

    From the boards behind a running broker (--broker HOST:PORT, and `remote_admin true` in
    its configuration), or from one on a serial line (--port, or the only one that is plugged
    in), whose broker stops for it and is started again; or from files that somebody has copied
    from a board or its SD card (--from DIR), which stay as they are. Only what FOLDER has not is
    fetched, and every CRC is verified. What is whole becomes one bundle in FOLDER/bundles and a
    line in FOLDER/MANIFEST.jsonl, which `slotmq telemetry` reads. A harvest that was interrupted
    goes on where it stopped. What is there and could not be got (a board is silent, say) is
    named, the rest is kept, and the exit code is 1.
    """
    from .manifest import locked

    report = None
    ways = {"--broker": address, "--port": device, "--from": copied}
    given = [option for option, value in ways.items() if value is not None]
    by_cable = given == ["--port"] or not (given or compacts)
    _check_options(given, by_cable, boards, set_time, delete, location)
    if not (given or by_cable or os.path.isdir(folder)):  # noqa: PTH112 - no error
        raise ToolError(f"{folder} is no harvest folder: there is nothing to compact")
    with locked(folder) as manifest:
        if address is not None:
            report = _network(address, login(user), set(boards), set_time, manifest)
        elif copied is not None:
            report = _copies(copied, manifest)
        elif by_cable:
            report = _usb(device, delete, location, manifest)
        if compacts:
            _compact(manifest)
    if report is not None and report.missing:
        raise SystemExit(1)


def _check_options(
    given: list[str], by_cable: bool, boards: tuple[str, ...], set_time: bool, delete: bool,
    location: str | None,
) -> None:  # fmt: skip
    if len(given) > 1:
        raise click.UsageError(f"{' or '.join(given)}, not both")
    if "--broker" not in given and set_time:
        raise click.UsageError(
            "--set-time goes with --broker: over a cable the broker stands still, and the reset"
            " that starts it anew takes the clock of an RP2040 back"
        )
    if "--broker" not in given and boards:
        raise click.UsageError("--board goes with --broker")
    if location is not None and not by_cable:
        raise click.UsageError("--location goes with --port: a running broker knows its own")
    if delete and not by_cable:
        raise click.UsageError("--delete goes with --port: elsewhere a ring is only read")


def _network(
    address: tuple[str, int], who: Any, boards: set[str], set_time: bool, manifest: Manifest
) -> Report:
    from . import collect, network
    from .store import Store

    ring = network.Ring(address, who)
    try:
        if set_time:
            _set_time(ring)
        source = f"mqtt://{address[0]}:{address[1]}"
        with bar("harvest") as done:
            report = collect.over_network(ring, boards, Store(manifest), source, _safe(done))
    finally:
        ring.close()
    _tell(report)
    return report


def _set_time(ring: Ring) -> None:
    told, known = ring.set_time()
    click.echo(f"the boards' time is set, to within {told} ms")
    if known > told:
        click.echo(f"the way there took longer, and it may be {known} ms: set it again", err=True)


def _usb(device: str | None, delete: bool, location: str | None, manifest: Manifest) -> Report:
    from ..deploy.repl import Repl, find
    from . import collect
    from .store import Store
    from .usb import Files

    found = find(device)
    with Repl(found) as line:
        try:
            with bar("harvest") as done:
                report = collect.over_usb(
                    Files(line, location), Store(manifest), found, _safe(done), delete=delete
                )
        finally:
            line.reset()
    _tell(report)
    return report


def _copies(folder: Path, manifest: Manifest) -> Report:
    from . import collect
    from .copies import Copies
    from .store import Store

    with bar("harvest") as done:
        source = f"file:{folder.absolute()}"
        report = collect.from_copies(Copies(folder), Store(manifest), source, _safe(done))
    _tell(report)
    return report


def _compact(manifest: Manifest) -> None:
    from . import compact

    with bar("compact") as done:
        gone, fresh = compact.compact(manifest, _safe(done))
    if not gone:
        click.echo(
            "nothing to compact: small bundles are kept until there are 8 MB of them, or half of"
            " what they have was harvested twice"
        )
    else:
        click.echo(f"bundles that went: {gone}, that came: {fresh}")


def _safe(done: Any) -> Done:
    """A bar that is not moved behind its end."""
    return lambda percent: done(min(99.0, percent))


def _tell(report: Report) -> None:
    for complaints in (report.gone, report.bad, report.missing):
        for text in complaints[:_TOLD]:
            click.echo(shown(text), err=True)
        if len(complaints) > _TOLD:
            click.echo(f"... and {len(complaints) - _TOLD} more like this", err=True)
    if not report.lines:
        click.echo("nothing new")
    for line in report.lines:
        records = sum(max(0, last - first + 1) for *_, first, last in line.segments)
        click.echo(f"{line.path}: {len(line.segments)} segments, {records:,} records")

"""`slotmq harvest`: the options, and what it prints."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from slotmq_tools.deploy.options import Address, login, reached
from slotmq_tools.deploy.options import cafile as cafile_option
from slotmq_tools.deploy.options import password_file as password_file_option
from slotmq_tools.deploy.options import port as port_option
from slotmq_tools.deploy.options import user as user_option
from slotmq_tools.errors import ToolError, count, shown
from slotmq_tools.progress import bar

if TYPE_CHECKING:
    from .collect import Report
    from .manifest import Manifest
    from .network import Ring

_SHOWN = 5  # lines of each kind


@click.command(short_help="Fetch what boards have recorded, over the network or USB.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--broker", "addresses", type=Address(), multiple=True,
    help="Fetch from the boards of this broker.",
)  # fmt: skip
@port_option
@click.option(
    "--from",
    "copied",
    metavar="DIR",
    help="Take the segment files (*.seg) that were copied into DIR.",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)
@user_option
@password_file_option
@cafile_option
@click.option(
    "--board", "boards", multiple=True, metavar="ID", help="Only this board; repeatable [all]."
)
@click.option("--set-time", is_flag=True, help="First send this computer's time to the boards.")
@click.option("--delete", is_flag=True, help="With --port: then delete there what is stored.")
@click.option("--location", metavar="PATH", help="With --port: the ring's folder [as configured].")
@click.option("--compact", "compacts", is_flag=True, help="Merge small bundles into 8 to 32 MB.")
def harvest(
    folder: Path, addresses: tuple[tuple[str, int], ...], device: str | None, copied: Path | None,
    user: str | None, boards: tuple[str, ...], set_time: bool, delete: bool, location: str | None,
    compacts: bool, password_file: Any, cafile: str | None,
) -> None:  # fmt: skip
    """Fetch what boards have recorded into FOLDER.

    \b
    --broker HOST:PORT  the boards of a running broker that has `remote_admin true`
    --port DEV          a board on a serial line; its broker is stopped meanwhile
    --from DIR          files copied from a board or its SD card; they stay unchanged

    Without any of these the harvest uses the only board that is plugged in.

    The harvest fetches only what FOLDER lacks, and verifies every CRC. It writes one bundle
    into FOLDER/bundles and one line into FOLDER/MANIFEST.sqlite, which `slotmq telemetry` reads.
    After an interruption the next harvest continues where this one stopped. If something
    cannot be fetched, for example from a board that does not answer, the harvest names it,
    stores the rest and ends with exit code 1.
    """
    from .manifest import locked

    if len(addresses) > 1:
        raise click.UsageError("one --broker at a time")
    report, address = None, next(iter(addresses), None)
    ways = {"--broker": address, "--port": device, "--from": copied}
    given = [option for option, value in ways.items() if value is not None]
    by_cable = given == ["--port"] or not (given or compacts)
    _check_options(given, by_cable, boards, set_time, delete, location)
    if not (given or by_cable or os.path.isdir(folder)):  # noqa: PTH112 - no error
        raise ToolError(f"{folder} is not a harvest folder: nothing to compact")
    with locked(folder) as manifest:
        if address is not None:
            who = login(user, password_file, cafile)
            report = _network(reached(address, cafile), who, set(boards), set_time, manifest)
        elif copied is not None:
            report = _copies(copied, manifest)
        elif by_cable:
            report = _usb(device, delete, location, manifest)
        if report is not None:
            _print_report(report)
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
    by_broker = "--broker" in given
    for option, is_given, way, fits in (
        ("--set-time", set_time, "--broker", by_broker),
        ("--board", boards, "--broker", by_broker),
        ("--location", location, "--port", by_cable),
        ("--delete", delete, "--port", by_cable),
    ):  # fmt: skip
        if is_given and not fits:
            raise click.UsageError(f"{option} needs {way}")


def _network(
    address: tuple[str, int], who: Any, boards: set[str], set_time: bool, manifest: Manifest
) -> Report:
    from . import collect, network
    from .store import Store

    source = f"mqtt://{address[0]}:{address[1]}"
    with closing(network.Ring(address, who)) as ring:
        if set_time:
            _set_time(ring)
        with bar("harvest") as done:
            return collect.over_network(ring, boards, Store(manifest), source, done)


def _set_time(ring: Ring) -> None:
    told, known = ring.set_time()
    click.echo(f"time sent to the boards, with an error bound of {told} ms")
    if known > told:
        click.echo(
            f"the message took longer: the error may be {known} ms; set the time again", err=True
        )


def _usb(device: str | None, delete: bool, location: str | None, manifest: Manifest) -> Report:
    from slotmq_tools.deploy.repl import Repl, find

    from . import collect
    from .store import Store
    from .usb import Files

    found = find(device)
    with Repl(found) as line:
        try:
            with bar("harvest") as done:
                files = Files(line, location)
                return collect.from_files(files, Store(manifest), found, done, delete=delete)
        finally:
            line.reset()


def _copies(folder: Path, manifest: Manifest) -> Report:
    from . import collect
    from .copies import Copies
    from .store import Store

    with bar("harvest") as done:
        source = f"file:{folder.absolute()}"
        return collect.from_files(Copies(folder), Store(manifest), source, done)


def _compact(manifest: Manifest) -> None:
    from . import compact

    with bar("compact") as done:
        gone, fresh = compact.compact(manifest, done)
    if not gone:
        click.echo(
            "nothing to compact: small bundles stay until they have 8 MB together, or until half"
            " of their segments were harvested again"
        )
    else:
        click.echo(f"bundles removed: {gone}, written: {fresh}")


def _print_report(report: Report) -> None:
    for complaints in (report.gone, report.bad, report.missing):
        for text in complaints[:_SHOWN]:
            click.echo(shown(text), err=True)
        if len(complaints) > _SHOWN:
            click.echo(f"... and {len(complaints) - _SHOWN} more like this", err=True)
    if not report.lines:
        click.echo("nothing new")
    for line in report.lines:
        records = sum(max(0, each.last - each.first + 1) for each in line.segments)
        click.echo(
            f"{line.path}: {count(len(line.segments), 'segment')}, {count(records, 'record')}"
        )

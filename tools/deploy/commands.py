"""`slotmq deploy`, `logs`, `status` and `backup`: what their options are and what they call."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from .. import boards
from ..errors import shown
from . import backup as copies
from . import board_files, copying, link_options, mqtt_client, repl, steps
from .options import PASSWORD, Address, asked, login
from .options import port as port_option
from .options import user as user_option

_FOR_BOARDS = [name for name in boards.names() if boards.load(name).mpy_arch]
_FOREVER_S = 10**9


@click.command()
@click.option("--board", type=click.Choice(_FOR_BOARDS), required=True)
@port_option
@click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The broker's configuration [the board's own; if it has none: anybody may come in on"
    " port 1883].",
)
@click.option(
    "--no-config",
    "no_conf",
    is_flag=True,
    help="None, whatever the board has: anybody may come in.",
)
@click.option("--wifi-ssid", metavar="NAME", help="Join this network.")
@click.option("--access-point", metavar="NAME", help="Be an access point of this name.")
@click.option(
    "--wifi-password-file",
    type=click.File("r"),
    help=f"Where the network's password is [${PASSWORD}, or it is asked for].",
)
@click.option("--ethernet", is_flag=True, help="Use Ethernet (the default of such boards).")
@click.option("--ppp", is_flag=True, help="Use PPP on UART 1: a modem, or the emulated board.")
@click.option(
    "--hostname", help="The board's name on the network [as before]; '' for one that it makes up."
)
@click.option(
    "--time",
    "source",
    metavar="SERVER",
    help="Take the time from this NTP server, or, with `remote_admin true`, from who publishes "
    "to '$SLOTMQ/time' [as before]; '' for none.",
)
@link_options.options
@click.option("--reach", "way", type=Address(), help="Where the broker is, seen from here.")
@user_option
@click.option(
    "--erase",
    is_flag=True,
    help="First remove all files from the board but slotmq.conf, its users, network.json and"
    " app.py, and a journal in raw flash; with --no-config all of them.",
)
@click.option(
    "--main",
    type=click.Choice([copying.REPLACE, copying.KEEP]),
    help="Replace a main.py that is not slotmq's, or keep it; the other one lies beside it.",
)
@click.option(
    "--app",
    type=click.Path(path_type=Path, dir_okay=False),
    help="An application that runs beside the broker: its start(broker) is called before the"
    " first turn.",
)
@click.option(
    "--force-board", "force", is_flag=True, help="Whatever the board says that it is, it is this."
)
def deploy(
    board: str,
    device: str | None,
    config: Path | None,
    no_conf: bool,
    wifi_ssid: str | None,
    access_point: str | None,
    wifi_password_file: Any,
    ethernet: bool,
    ppp: bool,
    hostname: str | None,
    source: str | None,
    way: tuple[str, int] | None,
    user: str | None,
    erase: bool,
    main: str | None,
    app: Path | None,
    force: bool,
    **more: Any,
) -> None:
    """Put the broker onto a board, start it there and try it."""
    facts = boards.load(board)
    ethernet = ethernet or (facts.network == "ethernet" and not (wifi_ssid or access_point or ppp))
    chosen = {
        "station": wifi_ssid is not None,
        "access_point": access_point is not None,
        "ethernet": ethernet,
        "ppp": ppp,
    }
    links = [name for name, wanted in chosen.items() if wanted]
    if len(links) != 1:
        raise click.UsageError("one of --wifi-ssid, --access-point, --ethernet or --ppp")
    if config and no_conf:
        raise click.UsageError("one of --config and --no-config")
    found = repl.find(device)
    ssid = wifi_ssid or access_point or ""
    anew = erase and no_conf
    password = _wifi_password(wifi_password_file) if ssid else None
    asked_for = link_options.said(more)
    network = board_files.Network(links[0], ssid, password, hostname, source, asked_for)
    who = login(user)
    order = steps.Order(facts, config, network, who, way, main, app, force, no_conf)
    steps.check_here(order)
    with repl.Repl(found) as line:
        with steps.as_it_was(line):
            if ssid and password is None and (anew or not copying.knows_password(line, ssid)):
                password = asked(f"Password of {ssid} (empty: none)", f"${PASSWORD}", default="")
        order = replace(order, network=replace(network, password=password))
        steps.deploy(order, line, click.echo, erase)


@click.command()
@port_option
@click.option("--seconds", type=float, default=_FOREVER_S, help="So long [until Ctrl-C].")
def logs(device: str | None, seconds: float) -> None:
    """Show what the board prints, while the broker goes on."""
    line = repl.Listener(repl.find(device))
    said = False
    try:
        for text in line.lines(seconds):
            said = True
            click.echo(text)
    except KeyboardInterrupt:
        pass
    finally:
        line.close()
    if not said:
        click.echo(_SILENT, err=True)


_SILENT = (
    "the board has said nothing: a broker says who comes and goes; one in safe mode, whose LED"
    " blinks fast, says why when it starts, and `slotmq status ADDRESS` shows it"
)


@click.command()
@click.argument("address", type=Address())
@user_option
def status(address: tuple[str, int], user: str | None) -> None:
    """Show what the broker at ADDRESS says of itself in $SYS, figures with their limits."""
    told = mqtt_client.with_limits(mqtt_client.system_topics(address, login(user)))
    found = {shown(topic): shown(value) for topic, value in told.items()}
    width = max(map(len, found))
    for topic in sorted(found):
        click.echo(f"{topic:{width}}  {found[topic]}")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@port_option
@click.option("--restore", is_flag=True, help="Write FOLDER's files onto the board instead.")
def backup(folder: Path, device: str | None, restore: bool) -> None:
    """Copy the board's files, configuration and journal among them, into FOLDER.

    The broker stops for it and is started again. FOLDER has the network's password."""
    with repl.Repl(repl.find(device)) as line:
        try:
            names = copies.restore(line, folder) if restore else copies.save(line, folder)
        finally:
            line.reset()
    way = "written from" if restore else "saved in"
    click.echo(f"{len(names)} files {way} {folder}: {', '.join(names)}")
    time.sleep(0.1)  # the reset is on its way


COMMANDS = (deploy, logs, status, backup)


def _wifi_password(file: Any) -> str | None:
    if file is not None:
        return str(file.readline()).rstrip("\r\n")
    return os.environ.get(PASSWORD)

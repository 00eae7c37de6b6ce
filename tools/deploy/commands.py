"""The commands `slotmq deploy`, `logs`, `acl` and `backup`, with their options."""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from .. import boards, passwd
from ..errors import shown, shown_lines
from . import backup as copies
from . import copying, link_options, repl, steps, users
from .mqtt_client import Login
from .network import Network
from .options import (
    LOGIN_PASSWORD,
    WIFI_PASSWORD,
    Address,
    ask_password,
    login,
    piped_password,
    reached,
)
from .options import cafile as cafile_option
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
    help="The broker's configuration [the board's own; if it has none, users may connect, on port"
    " 1883].",
)
@click.option(
    "--no-config",
    "no_conf",
    is_flag=True,
    help="No configuration, even if the board has one.",
)
@click.option("--wifi-ssid", metavar="NAME", help="Join this Wi-Fi network.")
@click.option("--access-point", metavar="NAME", help="Be an access point with this SSID.")
@click.option(
    "--wifi-password-file",
    type=click.File("r"),
    help=f"File with the network's password in its first line [${WIFI_PASSWORD}, or a prompt].",
)
@click.option("--ethernet", is_flag=True, help="Use Ethernet (the default of such boards).")
@click.option("--ppp", is_flag=True, help="Use PPP on UART 1: a modem, or the emulated board.")
@click.option(
    "--hostname", help="The board's name on the network [as before]; '' for MicroPython's default."
)
@click.option(
    "--time",
    "source",
    metavar="SERVER",
    help="Set the clock from this NTP server or, with `remote_admin true`, from messages to "
    "'$SLOTMQ/time' [as before]; '' for neither.",
)
@link_options.options
@click.option(
    "--reach",
    "broker",
    type=Address(),
    help="Address of the broker as seen from this computer [as the board reports it].",
)
@cafile_option
@user_option
@click.option(
    "--password-stdin",
    "piped",
    is_flag=True,
    help="Read the password of --user from standard input.",
)
@click.option(
    "--anonymous",
    is_flag=True,
    help="Without a configuration: no users, every client on the network may connect, read and"
    " write everything.",
)
@click.option(
    "--erase",
    is_flag=True,
    help="First remove a journal in raw flash and all files but slotmq.conf, its password_file and"
    " acl_file, network.json and app.py; with --no-config all files.",
)
@click.option(
    "--main",
    type=click.Choice([copying.REPLACE, copying.KEEP]),
    help="Replace a main.py that is not slotmq's, or keep it; the other one is stored beside it.",
)
@click.option(
    "--app",
    type=click.Path(path_type=Path, dir_okay=False),
    help="An application that runs beside the broker; its start(broker) is called first.",
)
@click.option(
    "--force-board", "force", is_flag=True, help="Deploy even if the board reports another model."
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
    broker: tuple[str, int] | None,
    cafile: str | None,
    user: str | None,
    piped: bool,
    anonymous: bool,
    erase: bool,
    main: str | None,
    app: Path | None,
    force: bool,
    **more: Any,
) -> None:
    """Copy the broker to a board, start it there and test it.

    A board without users gets its first one: --user, or a prompt asks for it. A later deploy
    keeps the users that the board has."""
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
        raise click.UsageError("expected one of --wifi-ssid, --access-point, --ethernet and --ppp")
    if config and no_conf:
        raise click.UsageError("expected only one of --config and --no-config")
    if anonymous and (config or user):
        raise click.UsageError("--anonymous: no --user, and no --config, which has a line for it")
    if piped and user is None:
        raise click.UsageError("--password-stdin needs --user")
    secret = piped_password() if piped else os.environ.get(LOGIN_PASSWORD)
    device = repl.find(device)
    ssid = wifi_ssid or access_point or ""
    password = _wifi_password(wifi_password_file) if ssid else None
    options = link_options.from_arguments(more)
    network = Network(links[0], ssid, password, hostname, source, options)
    broker = broker and reached(broker, cafile)
    order = steps.Order(
        facts, config, network, Login(), broker, main, app, force, no_conf, anonymous
    )
    steps.check_offline(order)
    with repl.Repl(device) as board_repl:
        with steps.reset_on_failure(board_repl):
            removed = erase and no_conf
            if (
                ssid
                and password is None
                and (removed or not copying.has_password(board_repl, ssid))
            ):
                prompt = f"Password of {ssid} (empty: none)"
                password = ask_password(prompt, f"${WIFI_PASSWORD}", default="")
            is_new = steps.lacks_users(order, board_repl, removed)
            who = _login(user, secret, is_new)
        who = replace(who, cafile=cafile)
        order = replace(order, network=replace(network, password=password), login=who)
        steps.deploy(order, board_repl, lambda text: click.echo(shown_lines(text)), erase)


@click.command()
@port_option
@click.option("--seconds", type=float, default=_FOREVER_S, help="Stop after that [at Ctrl-C].")
def logs(device: str | None, seconds: float) -> None:
    """Show what the board prints; its program continues."""
    line = repl.Listener(repl.find(device))
    is_silent = True
    try:
        for text in line.lines(seconds):
            is_silent = False
            click.echo(text)
    except KeyboardInterrupt:
        pass
    finally:
        line.close()
    if is_silent:
        click.echo(_SILENT, err=True)


_SILENT = (
    "the board printed nothing: a broker prints when clients connect and disconnect; a board in"
    " safe mode, whose LED blinks fast, prints the reason when it starts, and `slotmq status"
    " ADDRESS` shows it"
)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@port_option
def acl(file: Path, device: str | None) -> None:
    """Check FILE, and make it the `acl_file` of a board; the broker there starts again."""
    with repl.Repl(repl.find(device)) as line:
        path = users.put_rules(line, file)
    click.echo(f"{file} is now {path} of the board, which starts again")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@port_option
@click.option("--restore", is_flag=True, help="Write FOLDER's files to the board instead.")
def backup(folder: Path, device: str | None, restore: bool) -> None:
    """Copy the board's files, configuration and journal included, into FOLDER.

    This stops the broker and restarts it. FOLDER then contains the network's password."""
    with repl.Repl(repl.find(device)) as line:
        try:
            names = copies.restore(line, folder) if restore else copies.save(line, folder)
        finally:
            line.reset()
    action = "written from" if restore else "saved in"
    click.echo(f"{len(names)} files {action} {folder}: {', '.join(map(shown, names))}")
    time.sleep(0.1)  # until the serial port has sent the reset


def _login(user: str | None, secret: str | None, is_new: bool) -> Login:
    # The login for the test after the deploy; is_new: of the board's first user.
    if is_new and user is None and _has_terminal():
        user = click.prompt("The board has no users yet. Name of the first one")
    if user is None:
        return Login()  # if it is the first one, the plan says what is missing
    if is_new:
        passwd.check_name(user)
        secret = secret or ask_password(
            f"Password of the new user {user}", "--password-stdin", confirmation_prompt=True
        )
    return Login(user, secret) if secret else login(user)


def _has_terminal() -> bool:
    return sys.stdin.isatty()


def _wifi_password(file: Any) -> str | None:
    if file is not None:
        return str(file.readline()).rstrip("\r\n")
    return os.environ.get(WIFI_PASSWORD)

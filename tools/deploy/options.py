"""Options of several commands: the serial port of a board, the address and login of a broker."""

from __future__ import annotations

import os
import sys
import warnings
from getpass import GetPassWarning
from typing import TYPE_CHECKING, Any

import click

from ..errors import ToolError

if TYPE_CHECKING:
    from .mqtt_client import Login

WIFI_PASSWORD = "SLOTMQ_WIFI_PASSWORD"  # names of environment variables
LOGIN_PASSWORD = "SLOTMQ_PASSWORD"


class Address(click.ParamType):  # type: ignore[type-arg]
    """HOST:PORT, or HOST alone, with port 0; see `reached()`."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value[0], value[1]
        host, colon, port = value.rpartition(":")
        if not colon:
            return value, 0
        if not port.isdigit() or not 0 < int(port) < 65536:
            self.fail(f"{value}: expected HOST:PORT", param, ctx)
        return host.strip("[]"), int(port)


port = click.option("--port", "device", metavar="DEV", help="The board's serial port.")
user = click.option(
    "--user",
    help=f"Log in as this user, with the password in ${LOGIN_PASSWORD} [or a prompt].",
)

password_file = click.option(
    "--password-file",
    type=click.File("rb"),
    help=f"Read the password of --user from this file, - for standard input [${LOGIN_PASSWORD}].",
)
cafile = click.option(
    "--cafile",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Speak TLS, and trust the CAs in this file; the port is 8883 then, if none is given.",
)


def reached(address: tuple[str, int], cafile: str | None) -> tuple[str, int]:
    """The address with a port: by default that of MQTT, or of MQTT over TLS."""
    host, port = address
    return host, port or (8883 if cafile else 1883)


def login(name: str | None, file: Any = None, cafile: str | None = None) -> Login:
    """The user with a password from the file, the environment or the prompt; None: no user.
    cafile: as Login's."""
    from .mqtt_client import Login  # `slotmq run` need not load its library

    if name is None:
        if file is not None:
            raise click.UsageError("--password-file needs --user")
        return Login(cafile=cafile)
    password = _in_file(file) if file is not None else os.environ.get(LOGIN_PASSWORD)
    if not password:
        password = ask_password(f"Password of {name}", f"${LOGIN_PASSWORD}", default="")
    return Login(name, password, cafile)


def piped_password() -> str:
    """All of standard input, without its line end. ToolError: it is not UTF-8."""
    return _in_file(sys.stdin.buffer)


def _in_file(file: Any) -> str:
    try:
        text: str = file.read().decode()
    except UnicodeDecodeError:
        raise ToolError("the password is not UTF-8") from None
    return text.removesuffix("\n").removesuffix("\r")


def ask_password(prompt: str, alternative: str, **options: Any) -> str:
    """Prompt without echo. ToolError: there is no terminal; it names the alternative."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", GetPassWarning)
        try:
            typed: str = click.prompt(prompt, hide_input=True, show_default=False, **options)
            return typed
        except (click.Abort, GetPassWarning):
            raise ToolError(f"no password was given: use {alternative} instead") from None

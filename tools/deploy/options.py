"""Options that several commands have: where a board is, and who comes in."""

import os
import warnings
from getpass import GetPassWarning
from typing import Any

import click

from ..errors import ToolError
from .mqtt_client import Login

PASSWORD = "SLOTMQ_WIFI_PASSWORD"
LOGIN = "SLOTMQ_PASSWORD"


class Address(click.ParamType):  # type: ignore[type-arg]
    """HOST:PORT, or HOST alone."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value[0], value[1]
        host, colon, port = value.rpartition(":")
        if not colon:
            return value, 1883
        if not port.isdigit() or not 0 < int(port) < 65536:
            self.fail(f"{value}: expected HOST:PORT", param, ctx)
        return host.strip("[]"), int(port)


port = click.option("--port", "device", metavar="DEV", help="The board's serial port.")
user = click.option(
    "--user", help=f"Come in as this user, with the password in ${LOGIN} or asked for."
)


def login(name: str | None) -> Login:
    if name is None:
        return Login()
    return Login(
        name, os.environ.get(LOGIN) or asked(f"Password of {name}", f"${LOGIN}", default="")
    )


def asked(question: str, instead: str, **how: Any) -> str:
    """What was typed and not shown; ToolError: there is nobody to type it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", GetPassWarning)
        try:
            typed: str = click.prompt(question, hide_input=True, show_default=False, **how)
            return typed
        except (click.Abort, GetPassWarning):
            raise ToolError(f"no password was given: there is also {instead}") from None

"""`slotmq status`, which needs no library for boards on a serial line."""

from typing import Any

import click

from ..errors import shown
from . import mqtt_client, options


@click.command()
@click.argument("address", type=options.Address(), default="127.0.0.1")
@options.user
@options.password_file
@options.cafile
def status(
    address: tuple[str, int], user: str | None, password_file: Any, cafile: str | None
) -> None:
    """Show what the broker at ADDRESS publishes in $SYS, with the limit of each figure.

    Without ADDRESS: that of this computer."""
    who = options.login(user, password_file, cafile)
    address = options.reached(address, cafile)
    topics = mqtt_client.with_limits(mqtt_client.system_topics(address, who))
    found = {shown(topic): shown(value) for topic, value in topics.items()}
    width = max(map(len, found))
    for topic in sorted(found):
        click.echo(f"{topic:{width}}  {found[topic]}")

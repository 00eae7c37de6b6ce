"""mosquitto, its clients mosquitto_pub and mosquitto_sub, and mosquitto_passwd, from Debian.

The machine's own are not used, so that every machine compares with the same version, and no
installed daemon uses port 1883.
"""

from functools import cache
from pathlib import Path

from slotmq_tools.fetch import debian


@cache
def _unpacked() -> debian.Unpacked:
    return debian.unpack(["mosquitto", "mosquitto-clients"])


def broker() -> list[str]:
    """The command line of the broker, without options."""
    return _unpacked().command("usr/sbin/mosquitto")


def publish() -> list[str]:
    """The command line of mosquitto_pub, without options."""
    return _unpacked().command("usr/bin/mosquitto_pub")


def subscribe() -> list[str]:
    """The command line of mosquitto_sub, without options."""
    return _unpacked().command("usr/bin/mosquitto_sub")


def passwd() -> list[str]:
    """The command line of mosquitto_passwd, without options."""
    return _unpacked().command("usr/bin/mosquitto_passwd")


def example() -> Path:
    """mosquitto.conf with every key as a comment, and its default."""
    return _unpacked().root / "usr/share/doc/mosquitto/examples/mosquitto.conf"


def installed() -> Path:
    """The mosquitto.conf of a new installation."""
    return _unpacked().root / "etc/mosquitto/mosquitto.conf"

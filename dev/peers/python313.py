"""A CPython 3.13 from Debian, for tests of what older ones do not have."""

from functools import cache

from slotmq_tools.fetch import debian


@cache
def command() -> list[str]:
    """Its command line, without arguments."""
    return debian.unpack(["python3.13"]).command("usr/bin/python3.13")

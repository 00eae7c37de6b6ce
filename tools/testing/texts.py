"""Messages of a test, topic filters, and what a failed assertion says."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..errors import shown

Payload = bytes | str | int | float | Callable[[bytes], object] | None
_LAST = 12  # packets that a failure shows
_NEAR = 5  # topics
_LONGEST = 60  # characters of a payload


@dataclass(frozen=True)
class Message:
    """A message that was published; `client`: by whom, None: by the test or the program."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    client: str | None = None

    def __str__(self) -> str:
        more = f" qos {self.qos}" if self.qos else ""
        more += " retain" if self.retain else ""
        return f"{shown(self.topic)} {shown(self.payload)[:_LONGEST]}{more}"


def matches(topic_filter: str, topic: str) -> bool:
    """Does the filter match? As in the broker, wildcards at the beginning do not match $..."""
    from slotmq.fast.bytes_cpython import topic_matches

    name, text = topic_filter.encode(), topic.encode()
    return bool(topic_matches(name, 0, len(name), text, 0, len(text)))


def fits(payload: Payload, got: bytes) -> bool:
    """Is the payload the expected one? None: any; a function decides."""
    if payload is None:
        return True
    if callable(payload):
        return bool(payload(got))
    return got == (payload if isinstance(payload, bytes) else str(payload).encode())


def nearest(name: str, others: Iterable[str]) -> list[str]:
    """The names that resemble it most; if none does, some."""
    names = list(dict.fromkeys(others))
    return difflib.get_close_matches(name, names, _NEAR, 0.4) or names[:_NEAR]


def missing(
    topic_filter: str,
    payload: Payload,
    timeout: float,
    messages: Sequence[Message],
    packets: Sequence[str],
) -> str:
    """Why wait_for() failed: what was there instead."""
    wanted = shown(topic_filter)
    if payload is not None:
        wanted += " with " + ("a payload that fits" if callable(payload) else repr(payload))
    lines = [f"no message {wanted} within {timeout:g} s"]
    there = [one for one in messages if matches(topic_filter, one.topic)]
    if there:
        lines.append("published there, with other payloads:")
        lines += [f"    {one}" for one in there[-_NEAR:]]
    elif messages:
        near = nearest(topic_filter, (one.topic for one in messages))
        lines.append("nearest topics:")
        lines += [f"    {shown(topic)}" for topic in near]
    else:
        lines.append("no message was published at all")
    return "\n".join([*lines, "last packets:", *last(packets)])


def last(packets: Sequence[str], most: int = _LAST) -> list[str]:
    """The last packets, a line for each."""
    return [f"    {line}" for line in packets[-most:]] or ["    none"]

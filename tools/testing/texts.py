"""Messages of a test, topic filters, errors, and what a failed assertion says."""

import difflib
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import shown

Payload = bytes | str | int | float | Callable[[bytes], object] | None
SHOWN = 12  # packets that a failure shows
_NEAR = 5  # topics
_LONGEST = 60  # characters of a payload
LAST = "last packets:"


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


class NotRunning(RuntimeError):
    """The broker does not run: after a power cut, or since a callback has raised."""


class NotOnMicroPython(NotImplementedError):
    """The broker is in a process of its own, where this is not possible."""


def is_told(excinfo: Any) -> bool:
    """For __tracebackhide__: does the error tell the test what is wrong? Else it is ours."""
    kinds = (AssertionError, NotRunning, NotImplementedError, TypeError, ValueError)
    return isinstance(excinfo.value, kinds)


__tracebackhide__ = is_told


def checked_filter(topic_filter: str) -> str:
    """The filter. TypeError, ValueError: it is none, and would never match, or always."""
    from slotmq.fast.bytes_cpython import filter_ok

    if not isinstance(topic_filter, str):
        raise TypeError(f"topic filter: expected a str, not {topic_filter!r}")
    name = topic_filter.encode()
    if not filter_ok(name, 0, len(name)):
        raise ValueError(
            f"topic filter {topic_filter!r}: expected at least one character, + and # as whole "
            "levels, # as the last one"
        )
    return topic_filter


def checked_number(name: str, value: Any, least: int, kind: Any = int | float) -> Any:
    """The number. TypeError, ValueError: it is none, or too low."""
    if not isinstance(value, kind):
        whole = "whole " if kind is int else ""
        raise TypeError(f"{name}: expected a {whole}number, not {value!r}")
    if not value >= least:
        raise ValueError(f"{name}: expected at least {least}, not {value!r}")
    return value


def matches(topic_filter: str, topic: str) -> bool:
    """Does the filter match? As in the broker, wildcards at the beginning do not match $..."""
    from slotmq.fast.bytes_cpython import topic_matches

    name, text = topic_filter.encode(), topic.encode()
    return bool(topic_matches(name, 0, len(name), text, 0, len(text)))


def check_payload(payload: Payload) -> None:
    """TypeError: no payload can be compared with this."""
    if not (callable(payload) or isinstance(payload, bytes | str | int | float | None)):
        raise TypeError(f"payload: expected a str, bytes, a number or a function, not {payload!r}")


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
    count: int,
    messages: Sequence[Message],
    packets: Sequence[str],
) -> str:
    """Why wait_for() failed: what was there instead."""
    wanted = shown(topic_filter)
    if payload is not None:
        wanted += " with " + ("a payload that fits" if callable(payload) else repr(payload))
    there = [one for one in messages if matches(topic_filter, one.topic)]
    found = [one for one in there if fits(payload, one.payload)]
    head = f"only {len(found)} of {count} messages" if found else "no message"
    lines = [f"{head} {wanted} within {timeout:g} s", *_messages(found)]
    others = [one for one in there if one not in found]
    if others:
        lines += ["published there, with other payloads:", *_messages(others)]
    elif messages and not found:
        near = nearest(topic_filter, (one.topic for one in messages))
        lines += ["nearest topics:", *(f"    {shown(topic)}" for topic in near)]
    elif not found:
        lines.append("no message was published at all")
    return "\n".join([*lines, LAST, *last(packets)])


def _messages(found: Sequence[Message]) -> list[str]:
    return [f"    {one}" for one in found[-_NEAR:]]


def not_subscribed(
    topic_filter: str,
    client: str | None,
    timeout: float,
    there: Sequence[tuple[str, str, int]],
    packets: Sequence[str],
) -> str:
    """Why wait_for_subscription() failed."""
    of = f" of {shown(client)}" if client is not None else ""
    lines = [f"no subscription to {shown(topic_filter)}{of} within {timeout:g} s; there are:"]
    lines += [f"    {shown(one)}: {shown(name)} qos {qos}" for one, name, qos in there] or [
        "    none"
    ]
    return "\n".join([*lines, LAST, *last(packets)])


def hint() -> str:
    """For a wait that stops the event loop of this thread, and with it the clients in there."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:
        return ""
    return "\nin a coroutine, await wait_for_async(): this one stops the event loop"


def last(packets: Sequence[str], most: int = SHOWN) -> list[str]:
    """The last packets, a line for each."""
    return [f"    {line}" for line in packets[-most:]] or ["    none"]

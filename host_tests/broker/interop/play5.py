"""Runs a step of the scenario of MQTT 5.0 with clients of one kind."""

import contextlib
from collections.abc import Callable
from dataclasses import replace

from .moves5 import (
    Adapter,
    Connect,
    Die,
    Ended,
    Leave,
    Message,
    Move,
    Publish,
    Receive,
    Share,
    Step,
    Subscribe,
)

SLOW_S = 10  # seconds that may pass between publishing and receiving


def play(step: Step, base: str, new: Callable[[], Adapter]) -> None:
    """Go through the moves, with `base` before all topics and client ids."""
    players: dict[str, Adapter] = {}
    with contextlib.ExitStack() as last:
        for move in step:
            if isinstance(move, Connect) and move.who not in players:
                players[move.who] = new()
                last.callback(players[move.who].close)
            _do(move, base, players)


def _do(move: Move, base: str, players: dict[str, Adapter]) -> None:
    match move:
        case Share():
            _share(move, base, players)
        case Connect():
            present = players[move.who].connect(move.under(base))
            assert move.present in (None, present)
        case Subscribe():
            codes = players[move.who].subscribe(move.under(base))
            assert codes == [move.qos] * len(move.filters)
        case Publish():
            reason = players[move.who].publish(move.under(base))
            assert move.reason in (None, reason)
        case Receive():
            same(players[move.who].receive(), move.message.under(base))
        case Ended():
            assert players[move.who].ended() == move.reason
        case Leave():
            players[move.who].leave()
        case Die():
            players[move.who].die()


def same(got: Message, sent: Message) -> None:
    """The message is as it was sent, except for the seconds of its expiry that have passed."""
    if got.expiry is not None and sent.expiry is not None:
        assert sent.expiry - SLOW_S <= got.expiry <= sent.expiry
        got = replace(got, expiry=sent.expiry)
    assert got == sent


def _share(move: Share, base: str, players: dict[str, Adapter]) -> None:
    """Each message has come to one of the members, the last one to all."""
    end, found = move.end.under(base), []
    for who in move.members:
        while (message := players[who].receive()) != end:
            found.append(message)
    found.sort(key=lambda message: message.payload)
    assert found == [message.under(base) for message in move.messages]

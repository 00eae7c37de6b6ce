"""Of the streams whose last input had no plaintext one is read in a turn, one after the other: who
sends KeyUpdates or alerts has one read of 4 KB in a turn, however many there are. CPython only.
"""

from types import SimpleNamespace

from slotmq.platform import tls_cpython

IN, OUT = 1, 4
STRANGERS = 20


class Stream(tls_cpython.TlsStream):
    """Notes the events that it has to handle."""

    def __init__(self, *, mute: bool) -> None:
        self.why, self.is_mute, self.chosen = "", mute, 0
        self.events: list[int] = []

    def handle(self, event: int) -> int:
        self.events.append(event & IN)
        return event


def test_one_stream_without_plaintext_is_read_in_a_turn() -> None:
    strangers = [Stream(mute=True) for _ in range(STRANGERS)]
    client = Stream(mute=False)
    streams = dict(enumerate([*strangers, client]))
    none = SimpleNamespace
    poller = none(streams=streams, wait=None, register=None, modify=None)
    conns = none(counts=[0] * 16)
    loop = none(conns=conns, of_stream={stream: fd for fd, stream in streams.items()})
    tls = tls_cpython.Tls(loop, poller)
    for turn in range(1, STRANGERS + 1):
        tls.with_streams([(fd, IN | OUT) for fd in streams])
        assert sum(map(sum, (each.events for each in strangers))) == turn
        assert sum(client.events) == turn
    assert [sum(each.events) for each in strangers] == [1] * STRANGERS

"""A client of WebSocket, and of HTTP, on a fake stream."""

from fakes import Listener, Stream, World
from packets import split

from slotmq import Broker, Limits, Settings
from slotmq_tools.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    HEADERS,
    KEY,
    MASK,
    PING,
    PONG,
    TEXT,
    frame,
    frames_of,
    request,
)

__all__ = [
    "BINARY", "CLOSE", "CONTINUATION", "HEADERS", "KEY", "MASK", "PING", "PONG", "TEXT", "frame",
    "frames_of", "request",
]  # fmt: skip

ACCEPT = b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # the answer to KEY


def without(name, *more):
    """The usual headers without one, and others."""
    return [line for line in HEADERS if not line.startswith(name + ":")] + list(more)


def fragments(data, *cuts):
    """One message in several frames."""
    ends = list(cuts)
    ends.append(len(data))
    found = b""
    at = 0
    for k, end in enumerate(ends):
        kind = CONTINUATION if k else BINARY
        found += frame(data[at:end], kind, k == len(ends) - 1)
        at = end
    return found


class WebClient:
    """What came over one connection: the answer's lines, MQTT's packets, control frames."""

    def __init__(self, stream):
        self.stream = stream

    @property
    def lines(self):
        return bytes(self.stream.received).split(b"\r\n\r\n")[0].split(b"\r\n")

    @property
    def status(self):
        return int(self.lines[0].split()[1])

    @property
    def body(self):
        return bytes(self.stream.received).partition(b"\r\n\r\n")[2]

    def frames(self):
        found, rest = frames_of(self.body)
        assert not rest, rest
        return found

    def mqtt(self):
        """Everything that came in binary frames, as packets."""
        data = b"".join([data for kind, data in self.frames() if kind == BINARY])
        found, size = split(data)
        assert size == len(data)
        return found

    def control(self):
        return [each for each in self.frames() if each[0] != BINARY]

    def code(self):
        """The close code, behind which nothing comes; None: there is none."""
        kind, data = self.frames()[-1]
        return int.from_bytes(data[:2], "big") if kind == CLOSE else None


class Web:
    """A broker with a listener for WebSocket, beside one for TCP (world.client())."""

    def __init__(self, options=None, limits=None, **settings):
        limits = limits or Limits(connections=6)
        self.world = World(Broker(limits, Settings(**({"sys_interval": 0} | settings))))
        self.broker = self.world.broker
        self.listener = Listener()
        options = {"protocol": "websockets"} | (options or {})
        self.world.loop.listeners.add(self.listener, self.listener.accept, 0, options)

    def come(self, data, stream=None, turns=4):
        """A connection that sends these bytes."""
        return WebClient(self.world.come(data, turns, stream, self.listener).stream)

    def client(self, data=b"", stream=None, turns=4):
        """A connection that was upgraded, and sends these bytes."""
        one = self.come(request(), stream, turns)
        assert one.status == 101, one.lines
        self.send(one, data)
        return one

    def send(self, one, data, turns=4):
        one.stream.sent += data
        self.world.turn(turns)

    def stream(self, **how):
        return Stream(**how)

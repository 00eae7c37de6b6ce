"""mosquitto_pub and mosquitto_sub in the scenario of MQTT 5.0.

The first subscription starts mosquitto_sub, and each message a mosquitto_pub of
its own. What they print goes to a terminal, since into a pipe they print late.
"""

import os
import pty
import re
import selectors
import signal
import subprocess
import time

from slotmq_dev.peers import mosquitto

from .moves5 import Adapter, Cannot, Connect, Message, Publish, Subscribe
from .programs import TIMEOUT_S, pub

SEPARATOR = "\x1f"
TEXTS = ("content_type", "response_topic", "correlation")
TOLD = ("topic", "qos", "retain", "format", *TEXTS, "user", "expiry", "identifiers", "payload")
FORMAT = "MESSAGE %t %q %r %F %C %R %D %P %E %S %p".replace(" ", SEPARATOR)
NAMES = {
    "format": "payload-format-indicator",
    "content_type": "content-type",
    "response_topic": "response-topic",
    "correlation": "correlation-data",
    "expiry": "message-expiry-interval",
}


def _properties(packet: str, message: Message) -> list[str]:
    """The options for the properties that the message has."""
    found = {name: getattr(message, ours) for ours, name in NAMES.items()}
    pairs = [[name, str(value)] for name, value in found.items() if value is not None]
    pairs += [["user-property", *pair] for pair in message.user]
    return [part for pair in pairs for part in ("-D", packet, *pair)]


def _came(line: str) -> Message:
    """A line of FORMAT as a message; an empty field is a property that was not sent."""
    fields = dict(zip(TOLD, line.split(SEPARATOR)[1:], strict=True))
    numbers = {name: int(fields[name]) for name in ("format", "expiry") if fields[name]}
    texts = {name: fields[name] or None for name in TEXTS}
    user = tuple(tuple(pair.split(":")) for pair in fields["user"].split())
    return Message(
        fields["topic"],
        fields["payload"],
        int(fields["qos"]),
        fields["retain"] == "1",
        user=user,  # type: ignore[arg-type]
        identifiers=tuple(map(int, fields["identifiers"].split())),
        **numbers,  # type: ignore[arg-type]
        **texts,  # type: ignore[arg-type]
    )


class Terminal:
    """A program whose lines are read as it prints them."""

    def __init__(self, command: list[str]) -> None:
        self._end, its_end = pty.openpty()
        self.process = subprocess.Popen(command, stdout=its_end, stderr=its_end)
        os.close(its_end)
        self._lines: list[str] = []
        self._rest = b""

    def line(self, beginning: str) -> str:
        """The next line with this beginning."""
        deadline = time.monotonic() + TIMEOUT_S
        while not (found := [line for line in self._lines if line.startswith(beginning)]):
            self._read(deadline - time.monotonic())
        self._lines.remove(found[0])
        return found[0]

    def _read(self, timeout_s: float) -> None:
        with selectors.DefaultSelector() as ready:
            ready.register(self._end, selectors.EVENT_READ)
            assert ready.select(max(timeout_s, 0)), f"all that it said is {self._lines}"
        *lines, self._rest = (self._rest + os.read(self._end, 65536)).split(b"\r\n")
        self._lines += [line.decode() for line in lines]

    def stop(self) -> None:
        """Wait for its end after a signal; mosquitto_sub sometimes ignores one for ever."""
        try:
            self.process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self._end)


class MosquittoAdapter(Adapter):
    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address)
        self._how: Connect | None = None
        self._filters: list[str] = []  # with their options
        self._reader: Terminal | None = None

    def connect(self, how: Connect) -> bool:
        """Nothing yet: mosquitto_sub connects with its first subscription."""
        if how.present is not None:
            raise Cannot("mosquitto_sub does not tell")
        if how.aliases:
            raise Cannot("libmosquitto takes a message without a topic amiss")
        self._how = how
        if self._filters:
            self._read()
        elif how.will:
            self.subscribe(Subscribe(how.who, (f"{how.name}/unused",)))
        return False

    def subscribe(self, how: Subscribe) -> list[int]:
        if how.no_local or how.handling:
            raise Cannot("mosquitto_sub has no option for it")
        options = ["-q", str(how.qos)]
        options += ["--retain-as-published"] * how.as_published
        if how.identifier:
            options += ["-D", "subscribe", "subscription-identifier", str(how.identifier)]
        self._filters = [*options, *(part for name in how.filters for part in ("-t", name))]
        return self._read()

    def _read(self) -> list[int]:
        """Start mosquitto_sub. -> the codes of the SUBACK."""
        command = [*mosquitto.subscribe(), "-h", self.address[0], "-p", str(self.address[1])]
        options = ["-V", "mqttv5", "-d", "-F", FORMAT, *self._connection(), *self._filters]
        self._reader = Terminal([*command, *options])
        codes = self._reader.line("Subscribed ").rpartition(": ")[2]
        return [int(code) for code in codes.split(",")]

    def _connection(self) -> list[str]:
        assert self._how
        options = ["-i", self._how.name, "-x", str(self._how.expiry)]
        options += ["-c"] * (not self._how.clean)
        if will := self._how.will:
            options += ["--will-retain"] * will.retain
            options += ["--will-topic", will.topic, "--will-payload", will.payload]
            options += ["--will-qos", str(will.qos), "-D", "will", "will-delay-interval", "0"]
            options += _properties("will", will)
        return options

    def publish(self, how: Publish) -> int | None:
        assert self._how
        assert not self._reader, "it would publish through another connection"
        message = how.message
        options = ["-V", "mqttv5", "-d", "-i", self._how.name, "-x", str(self._how.expiry)]
        options += ["-t", message.topic, "-m", message.payload, "-q", str(message.qos)]
        options += ["-r"] * message.retain + _properties("publish", message)
        if how.alias:
            options += ["-D", "publish", "topic-alias", str(how.alias)]
        answer = pub(self.address, *options, "--repeat", str(how.times))
        assert answer.returncode == 0, answer.stderr
        codes = re.findall(rb"received PUBACK \(Mid: \d+, RC:(\d+)\)", answer.stdout)
        return int(codes[-1]) if codes else None

    def receive(self) -> Message:
        assert self._reader
        return _came(self._reader.line("MESSAGE"))

    def ended(self) -> int:
        assert self._reader
        line = self._reader.line("Received DISCONNECT")
        self.die()  # else it would connect again
        return int(line.rpartition("(")[2].rstrip(")"))

    def leave(self) -> None:
        if self._how and self._how.will:
            raise Cannot("a signal makes mosquitto_sub leave its will to the broker")
        self._stop(signal.SIGTERM)

    def die(self) -> None:
        self._stop(signal.SIGKILL)

    def close(self) -> None:
        """Without a subscription there is no process to end."""
        if self._reader:
            self._stop(signal.SIGTERM)

    def _stop(self, how: signal.Signals) -> None:
        assert self._reader
        self._reader.process.send_signal(how)
        self._reader.stop()
        self._reader = None

"""MQTT.js in the scenario of MQTT 5.0: adapter.cjs reads a command from each line of its input."""

import itertools
import json
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

from slotmq_dev.peers import node

from .moves5 import Adapter, Cannot, Connect, Message, Publish, Subscribe
from .programs import TIMEOUT_S

SCRIPT = Path(__file__).with_name("adapter.cjs")
_numbers = itertools.count()


class Node:
    """The script with the clients; each command and each answer is a line of JSON."""

    def __init__(self) -> None:
        command, environment = node.command(SCRIPT)
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **what: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(what), file=self._process.stdin, flush=True)
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def close(self) -> None:
        self._process.communicate(timeout=TIMEOUT_S)
        assert self._process.returncode == 0


def _expressible(message: Message | None) -> None:
    names = [name for name, _ in message.user] if message else []
    if len(set(names)) < len(names):
        raise Cannot("MQTT.js gathers the values by name, out of order")


class MqttJsAdapter(Adapter):
    def __init__(self, address: tuple[str, int], node: Node) -> None:
        super().__init__(address)
        self._node = node
        self._number = next(_numbers)

    def connect(self, how: Connect) -> bool:
        _expressible(how.will)
        host, port = self.address
        return bool(self._ask("connect", host=host, port=port, **asdict(how)))

    def subscribe(self, how: Subscribe) -> list[int]:
        return list(self._ask("subscribe", **asdict(how)))

    def publish(self, how: Publish) -> int | None:
        _expressible(how.message)
        code = self._ask("publish", **asdict(how))
        return None if code is None else int(code)

    def receive(self) -> Message:
        fields = self._ask("receive")
        fields["user"] = tuple(tuple(pair) for pair in fields["user"])
        fields["identifiers"] = tuple(fields["identifiers"])
        return Message(**fields)

    def ended(self) -> int:
        return int(self._ask("ended"))

    def leave(self) -> None:
        self._ask("leave")

    def die(self) -> None:
        self._ask("die")

    def close(self) -> None:
        self._ask("close")

    def _ask(self, what: str, **how: Any) -> Any:
        return self._node.ask(do=what, client=self._number, **how)

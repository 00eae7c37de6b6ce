"""What a test of MQTT 5.0 is given: clients of that version and of older ones."""

from ..wire import client as older
from ..wire.scene import Scene as OlderScene
from . import codec
from .client import Client
from .codec import Value


class Scene(OlderScene):
    """The clients of one test, with client ids and topics that no other test uses."""

    codec = codec

    def codes(self, ours: int, *others: int) -> tuple[int, ...]:
        """The codes that may come: the first one from slotmq, all of them from the peer."""
        return (ours, *others) if self.is_peer else (ours,)

    def socket(self, *, narrow: bool = False) -> Client:
        client = Client(self.broker.address, self._send, narrow=narrow)
        client.expect_known()
        self._clients.append(client)
        return client

    def packet(
        self, name: str = "", *, clean: bool = True, session_expiry: int = 0, **options: Value
    ) -> bytes:
        """The CONNECT of the client with that name; `clean` is its Clean Start."""
        client_id = self.client_id(name or f"client{next(self._unnamed)}x")
        if session_expiry:
            self._kept.add(client_id)
            options["session_expiry"] = session_expiry
        return codec.connect(client_id, clean=clean, **options)

    def connect(self, name: str = "", *, narrow: bool = False, **options: Value) -> Client:
        """A client that the broker has accepted. The same name is the same client id."""
        client = self.socket(narrow=narrow)
        client.terms = options
        answer = client.connect(self.packet(name, **options))
        assert answer.code == 0, answer
        return client

    def older(self, name: str = "", *, level: int = 4, **options: Value) -> older.Client:
        """A client of MQTT 3.1.1, or of 3.1."""
        client = older.Client(self.broker.address, self._send)
        client.expect_known()
        self._clients.append(client)
        answer = client.connect(OlderScene.packet(self, name, level=level, **options))
        assert answer.code == 0, answer
        return client

    def refuse(self, *codes: int, name: str = "", **options: Value) -> codec.Connack:
        """A client whose CONNECT the broker answers with one of these codes."""
        answer: codec.Connack = self.socket().expect_refused(self.packet(name, **options), *codes)
        return answer


class SceneOfEachVersion(Scene):
    """For tests of all versions: a session without Clean Start outlives its connection."""

    def packet(self, name: str = "", *, clean: bool = True, **options: Value) -> bytes:
        if not clean:
            options["session_expiry"] = 60
        return super().packet(name, clean=clean, **options)

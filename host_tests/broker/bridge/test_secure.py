"""A bridge over TLS: certificates on both sides, and what is wrong is refused."""

import contextlib
import getpass
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slotmq_tools.ports import free_port

from ..tls.conftest import made
from ..wire.process import PEER
from .network import Collector
from .test_two_brokers import AGAIN, ID, Two, has_all


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("certs"), "--client", "edge")


class Secure(Two):
    """`there` has a listener with a certificate, which demands one."""

    def __init__(
        self, stack: contextlib.ExitStack, folder: Path, runtime: str, other: str, certs: Path
    ) -> None:
        super().__init__(stack, folder, runtime, "cpython")
        self.certs = certs
        self.port = free_port()
        lines = f"listener {self.port} 127.0.0.1", f"certfile {certs}/server.crt"
        more = f"keyfile {certs}/server.key", f"cafile {certs}/ca.crt", "require_certificate true"
        me = (f"user {getpass.getuser()}",) if other == PEER else ()  # it may read the key
        self.there = self.start(other, "\n".join((*lines, *more, *me, "")))

    def secure(self, *lines: str, ca: str = "ca.crt", certificate: bool = True) -> None:
        own = f"bridge_certfile {self.certs}/edge.crt", f"bridge_keyfile {self.certs}/edge.key"
        keys = (f"bridge_cafile {self.certs}/{ca}", *(own if certificate else ()), *lines)
        text = f"log_type all\nconnection up\naddress 127.0.0.1:{self.port}\n{ID}{AGAIN}"
        self.here = self.start(self._runtime, text + "\n".join((*keys, "")))


@pytest.fixture
def bridged(tmp_path: Path, runtime: str, certs: Path) -> Iterator[Callable[[str], Secure]]:
    with contextlib.ExitStack() as stack:
        yield lambda other: Secure(stack, tmp_path, runtime, other, certs)


@pytest.mark.parametrize("other", [PEER, "cpython"])
@pytest.mark.parametrize("prefix", ["", pytest.param(' "" far/', marks=pytest.mark.nightly)])
def test_messages_pass_both_ways(
    bridged: Callable[[str], Secure], other: str, prefix: str
) -> None:
    two = bridged(other)
    two.secure(f"topic q/# both 2{prefix}", "bridge_tls_version tlsv1.2")
    two.wait_up()
    far = "far/" if prefix else ""
    here, there = two.collector(two.here, "q/in/#"), two.collector(two.there, f"{far}q/out/#")
    near_client, far_client = two.publisher(two.here), two.publisher(two.there)
    wanted = [b"%03d" % k + b"x" * (30000 if k % 7 == 0 else 10) for k in range(24)]
    for k, payload in enumerate(wanted):
        near_client.publish(f"q/out/{1 + k % 2}", payload, 1 + k % 2)
        far_client.publish(f"{far}q/in/{1 + k % 2}", payload, 1 + k % 2)
    for client, name in ((there, f"{far}q/out/"), (here, "q/in/")):

        def is_complete(c: Collector, name: str = name) -> bool:
            return has_all(name, wanted, c)

        client.wait_for(is_complete, "all of them")
        assert client.came[name + "2"] == wanted[1::2]


def test_a_certificate_of_another_ca_and_a_missing_one_are_refused(
    bridged: Callable[[str], Secure], certs: Path, tmp_path: Path
) -> None:
    two = bridged("cpython")
    other = made(tmp_path / "other")
    (certs / "other.crt").write_bytes((other / "ca.crt").read_bytes())
    two.secure("topic a", ca="other.crt")
    two.here.wait_for(lambda: "TLS with 127.0.0.1: " in two.here.complaints(), "its refusal")
    client = two.collector(two.there, "#")
    two.here.stop()
    two.secure("topic a", certificate=False)
    two.publisher(two.here).publish("a", b"never", 0)
    two.here.wait_for(lambda: "TLS with 127.0.0.1: " in two.here.complaints(), "the other one's")
    client.collect()
    assert client.came == {}

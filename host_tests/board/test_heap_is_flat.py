"""A thousand clients connect and disconnect: the heap does not grow."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client

from .conftest import ANSWER_S, Deployed

GROWTH_MAX = 1024  # bytes, for a thousand clients
READINGS = 5
TIMEOUT_S = 120


def test_the_heap_does_not_grow_with_a_thousand_clients(board: Deployed) -> None:
    def come_and_go(name: str) -> None:
        client = Client(board.address)
        client.sock.settimeout(ANSWER_S)
        assert client.connect(codec.connect(name)).code == 0
        client.disconnect()
        client.sock.close()

    def readings() -> Iterator[int]:
        """The used heap; modules loaded on demand and garbage are in some of the readings."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            time.sleep(2)
            yield board.system("broker/heap/current")

    with ThreadPoolExecutor(4) as pool:  # they mostly wait for slirp
        list(pool.map(come_and_go, [f"warm{n}" for n in range(20)]))
        before = min(heap for heap, _ in zip(readings(), range(READINGS), strict=False))
        list(pool.map(come_and_go, [f"c{n}" for n in range(1000)]))
        seen = []
        for heap in readings():
            seen.append(heap)
            if heap <= before + GROWTH_MAX:
                break
    assert min(seen) <= before + GROWTH_MAX, (before, seen)
    assert board.system("broker/clients/connected") == 1

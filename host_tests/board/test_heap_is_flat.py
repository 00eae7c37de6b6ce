"""Clients that come and go, a thousand times: nothing of them stays on the heap."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from host_tests.broker.wire import codec
from host_tests.broker.wire.client import Client

from .conftest import ANSWER_S, Deployed

KEPT = 1024  # a byte for each, at the most
READINGS = 5
TIMEOUT_S = 120


def test_a_thousand_clients_come_and_go_and_the_heap_is_flat(board: Deployed) -> None:
    def come_and_go(name: str) -> None:
        client = Client(board.address)
        client.sock.settimeout(ANSWER_S)
        assert client.connect(codec.connect(name)).code == 0
        client.disconnect()
        client.sock.close()

    def readings() -> Iterator[int]:
        """What was loaded on demand, and garbage, come and go: the least is what stays."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            time.sleep(2)
            yield board.system("broker/heap/current")

    with ThreadPoolExecutor(4) as pool:  # most of the time each waits for slirp
        list(pool.map(come_and_go, [f"warm{n}" for n in range(20)]))
        before = min(heap for heap, _ in zip(readings(), range(READINGS), strict=False))
        list(pool.map(come_and_go, [f"c{n}" for n in range(1000)]))
        seen = []
        for heap in readings():
            seen.append(heap)
            if heap <= before + KEPT:
                break
    assert min(seen) <= before + KEPT, (before, seen)
    assert board.system("broker/clients/connected") == 1

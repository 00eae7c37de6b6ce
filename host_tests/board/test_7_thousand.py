"""Clients that come and go, a thousand times: nothing of them stays on the heap."""

import time
from concurrent.futures import ThreadPoolExecutor

from host_tests.wire import codec
from host_tests.wire.client import Client

from .conftest import ANSWER_S, Deployed


def test_a_thousand_clients_come_and_go_and_the_heap_is_flat(board: Deployed) -> None:
    def come_and_go(name: str) -> None:
        client = Client(board.address)
        client.sock.settimeout(ANSWER_S)
        assert client.connect(codec.connect(name)).code == 0
        client.disconnect()
        client.sock.close()

    def heap() -> int:
        """The least of some readings: what was loaded on demand comes and goes."""
        found = []
        for _ in range(3):
            time.sleep(2)
            found.append(board.system("broker/heap/current"))
        return min(found)

    with ThreadPoolExecutor(4) as pool:  # most of the time each waits for slirp
        list(pool.map(come_and_go, [f"warm{n}" for n in range(20)]))
        before = heap()
        list(pool.map(come_and_go, [f"c{n}" for n in range(1000)]))
        after = heap()
    assert abs(after - before) <= 1024, (before, after)  # a byte for each, at the most
    assert board.system("broker/clients/connected") == 1

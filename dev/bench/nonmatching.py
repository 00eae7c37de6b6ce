"""The cost of subscriptions that do not match: a publishing pair beside ever more of them."""

from .client import Address, Client
from .pipelined import Shape, connect

COUNTS = (10, 1_000, 10_000)
_SHAPE = Shape(publishers=1, subscribers=1, depth=4)
_HOLDERS = 10


class NonMatching:
    """A publisher with its subscriber, and clients that have subscriptions to other topics."""

    def __init__(self, address: Address) -> None:
        self._pair = connect(_SHAPE, address)
        self._address = address
        self._holders: list[Client] = []

    def set_count(self, count: int) -> None:
        """Replace the other subscriptions by so many."""
        self._close_holders()
        share = count // _HOLDERS
        for index in range(_HOLDERS):
            holder = Client(self._address, f"holder{index}")
            holder.subscribe([_filter(index, number) for number in range(share)])
            self._holders.append(holder)

    def run(self, seconds: float) -> int:
        """Publish for so long; -> the number of deliveries."""
        return self._pair.run(seconds)

    def close(self) -> None:
        """Close all connections."""
        self._close_holders()
        self._pair.close()

    def _close_holders(self) -> None:
        for holder in self._holders:
            holder.close()
        self._holders = []


def _filter(holder: int, number: int) -> str:
    """A filter that shares its first levels with the pair's topic; every tenth has a wildcard."""
    last = "+" if number % 10 == 9 else "d0000"
    return f"bench/p00/other{holder}/n{number:05}/{last}"

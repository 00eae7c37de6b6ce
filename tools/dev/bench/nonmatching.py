"""What subscriptions cost that do not match: the same pair of clients beside ever more of them."""

from .client import Address, Client
from .pipelined import Shape, connect

COUNTS = (10, 1_000, 10_000)
_SHAPE = Shape(publishers=1, subscribers=1, depth=4)
_HOLDERS = 10


class Bystanders:
    """A pair that publishes, and clients that hold subscriptions to other topics."""

    def __init__(self, address: Address) -> None:
        self._pair = connect(_SHAPE, address)
        self._address = address
        self._holders: list[Client] = []

    def set_count(self, count: int) -> None:
        """Let so many subscriptions be there that do not match."""
        self._dismiss()
        share = count // _HOLDERS
        for index in range(_HOLDERS):
            holder = Client(self._address, f"holder{index}")
            holder.subscribe([_filter(index, number) for number in range(share)])
            self._holders.append(holder)

    def run(self, seconds: float) -> int:
        """Publish for so long; the number of deliveries to the pair's subscriber."""
        return self._pair.run(seconds)

    def close(self) -> None:
        """Hang up all connections."""
        self._dismiss()
        self._pair.close()

    def _dismiss(self) -> None:
        for holder in self._holders:
            holder.close()
        self._holders = []


def _filter(holder: int, number: int) -> str:
    """Every tenth has a wildcard; all share the first levels with the topic of the pair."""
    last = "+" if number % 10 == 9 else "d0000"
    return f"bench/p00/other{holder}/n{number:05}/{last}"

"""boot_micropython.py with a heap that no board has. While the broker makes its tables, a large
bytearray is pages that take no memory until somebody uses them. So most of a computer's tables are
not resident. (In a board's heap this code would take what the tables need.)
"""

import builtins

_LARGE = 1 << 18  # bytes of a table that gets pages of its own
_BELOW = 1 << 28  # how far below the heap they begin
_own = builtins.bytearray


def install():
    """Replace bytearray(), unless this MicroPython cannot make pages.

    They lie just below the heap, since the inner loops keep distances in 31 bits."""
    try:
        import ffi
        import uctypes

        mmap = ffi.open(None).func("P", "mmap", "PLiiiL")
    except (ImportError, OSError):
        return
    top = [(uctypes.addressof(bytearray(1)) - _BELOW) & ~0xFFF]

    def make(*args):
        n = args[0] if args else 0
        if not isinstance(n, int) or n < _LARGE:
            return _own(*args)
        size = (n + 0xFFF) & ~0xFFF
        top[0] -= size
        address = mmap(top[0], size, 3, 0x22, -1, 0)  # private, anonymous
        return uctypes.bytearray_at(address, n) if address == top[0] else _own(*args)

    builtins.bytearray = make


def main(argv, on_ready):
    """slotmq.app.main(). Once the broker listens, bytearray() is MicroPython's own again."""

    def ready(broker):
        builtins.bytearray = _own
        on_ready(broker)

    return _main(argv, ready)


install()
from slotmq import app  # noqa: E402

_main = app.main
app.main = main
import boot_micropython  # noqa: E402, F401

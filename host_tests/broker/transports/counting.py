"""The broker of `slotmq run` counts how many reads of each kind of connection its fast path had,
and prints them at its end. MicroPython runs this file itself, for CPython it is imported by
counted_run.py."""

import sys

from slotmq import app

_SERVE = 4  # of Loop.at_hand; the code is not packed, so it has that name
# By the type of the stream; with the heap locked no key can be added
direct = {"Stream": 0, "socket": 0, "TlsStream": 0}
framed = dict(direct)
_main = app.main


def count(broker):
    loop = broker.loop
    serve = loop.at_hand[_SERVE]

    def counted(conn, n, columns):
        stream = loop.conns.stream[conn]
        counts = direct if loop.conns.attached[conn] is stream else framed
        counts[type(stream).__name__] += 1
        serve(conn, n, columns)

    loop.at_hand[_SERVE] = counted


def main(argv, on_ready):
    """slotmq.app.main() of such a broker."""

    def ready(broker):
        count(broker)
        on_ready(broker)

    status = _main(argv, ready)
    for words, counts in (("direct", direct), ("framed", framed)):
        for name in counts:
            print("fast path:", words, name, counts[name])
    return status


app.main = main  # type: ignore[assignment]
if sys.implementation.name == "micropython":
    sys.path.insert(0, __file__.rsplit("/", 4)[0] + "/tools/run")
    __import__("slotmq.v5.extension")  # from further below the stack is too deep for it
    __import__("pages_micropython")  # it runs the broker

"""A broker on either runtime, with the arguments of `slotmq run`: counting_broker.py ARGUMENTS

At its end it prints a line for each kind of connection: how many reads the fast path had of it.
"""

import sys

from slotmq import app

_SERVE = 4  # of Loop.at_hand; the code is not packed, so it has that name
# By the type of the stream; with the heap locked no key can be added
direct = {"Stream": 0, "socket": 0, "TlsStream": 0}
framed = dict(direct)


def count(broker):
    loop = broker.loop
    serve = loop.at_hand[_SERVE]

    def counted(conn, n, columns):
        stream = loop.conns.stream[conn]
        counts = direct if loop.conns.attached[conn] is stream else framed
        counts[type(stream).__name__] += 1
        serve(conn, n, columns)

    loop.at_hand[_SERVE] = counted


status = app.main(sys.argv[1:], count)
for words, counts in (("direct", direct), ("framed", framed)):
    for name in counts:
        print("fast path:", words, name, counts[name])
sys.exit(status)

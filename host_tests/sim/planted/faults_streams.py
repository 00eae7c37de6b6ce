"""Faults by which a stream has other bytes than those of its packets, and so forged packets."""

from .faults import Fault

FAULTS = (
    Fault(
        "streams: a packet id where there is none",
        "v5/large_messages.py",
        "    set_chunked(conns, conn, source.msg, 0, packet_id)",
        "    set_chunked(conns, conn, source.msg, 0, packet_id or _NONE)",
    ),
    Fault(
        "streams: from version 5 to 3, two bytes less than the remaining length says",
        "v5/large_messages.py",
        "        remaining -= source.props\n",
        "        remaining -= source.props and source.props - 2\n",
    ),
    Fault(
        "streams: a chunk is copied twice",
        "delivery/outgoing.py",
        "        off += n\n        at += n\n",
        "        off += n if off else n // 2\n        at += n\n",
    ),
    Fault(
        "streams: the alias of a client is passed on",
        "v5/publish.py",
        "        start = _cut(source.buf, start, values[_ALIAS + _MORE], 3)\n",
        "        pass\n",
    ),
    Fault(
        "streams: each identifier takes two bytes",
        "v5/send.py",
        "    return 1 + length_bytes(number)\n\n\ndef _matches",
        "    return 2\n\n\ndef _matches",
    ),
)

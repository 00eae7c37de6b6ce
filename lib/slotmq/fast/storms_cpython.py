# storms_cpython.py - the contract of fast/storms_viper.py on CPython, with a regular expression
# and one join for all packets.
import re

_NONE = 0xFFFF
_PUBLISHES = 1
_NO_PACKET = 1 << 14  # a Remaining Length that the fast path leaves
# The fixed header, by its Remaining Length
_HEADS = [bytes((0x31, n)) for n in range(128)]
_HEADS += [bytes((0x31, n & 127 | 128, n >> 7)) for n in range(128, _NO_PACKET)]


def put_retained(tables, msgs, i, end, conn, buf, at, n, ident, most, look_at):
    """Put those messages of msgs[i:end] that match the filter buf[at:at + n] into tx; -> end, or
    the first that must be looked at."""
    _, _, m, c = tables
    matches = _expression(bytes(buf[at : at + n])).match
    own = _own_properties(ident) if c.level[conn] == 5 else b""
    firsts, lengths, flags, text_of = m.first, m.topic_len, m.flags, m.arena.text
    size = m.arena.size
    space = c.tx_limit[conn] - c.tx_end[conn]
    most = most or _NO_PACKET
    parts = []
    for msg in msgs[i:end]:
        if msg != _NONE:
            stop = lengths[msg] + 2
            if stop > size:
                break
            text = text_of(firsts[msg])
            if matches(text, 2, stop):
                rest = len(text) + len(own)
                if rest >= _NO_PACKET or flags[msg] & look_at:
                    break
                head = _HEADS[rest]
                rest += len(head)
                if rest > space or rest > most:
                    break
                space -= rest
                parts += (head, text[:stop], own, text[stop:]) if own else (head, text)
        i += 1
    if parts:
        at = c.tx_end[conn]
        c.tx_end[conn] = stop = c.tx_limit[conn] - space
        c.tx[at:stop] = b"".join(parts)
        c.counts[_PUBLISHES] += len(parts) // (4 if own else 2)
        if not c.out[conn]:
            c.mark_dirty(conn)
    return i


def _expression(topic_filter):
    # What the topic names begin with that a filter matches [4.7].
    levels = topic_filter.split(b"/")
    parts = [b"[^/]*" if level == b"+" else re.escape(level) for level in levels]
    text = b"/".join(parts) + b"\\Z"
    if levels[-1] == b"#":
        text = b"/".join(parts[:-1]) + b"(?:/|\\Z)" if levels[1:] else b""
    return re.compile(b"(?!\\$)" + text if levels[0] in (b"+", b"#") else text)


def _own_properties(ident):
    # Their length, and the identifier of the subscription.
    number = []
    while ident:
        number.append(ident & 127 | 128)
        ident >>= 7
    if not number:
        return b"\0"
    number[-1] &= 127
    return bytes((1 + len(number), 0x0B, *number))

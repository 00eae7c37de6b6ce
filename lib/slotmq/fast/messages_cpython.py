# messages_cpython.py - the contract of fast/messages_viper.py on CPython.
from slotmq.constants import FIRST_FREE, IN_USE, MOST_IN_USE, NONE


def store(columns, buf, topic, topic_len, payload, payload_len, flags):
    """A message slot for topic (its length before it) and payload of buf, or NONE."""
    _, _, m, _ = columns
    count = m.count
    msg = count[FIRST_FREE]
    if msg == m.slots:
        return NONE
    first = m.arena.keep(buf, topic - 2, topic_len + 2, payload, payload_len)
    if first == NONE:
        return NONE
    count[FIRST_FREE] = m.next[msg]
    count[IN_USE] += 1
    if count[IN_USE] > count[MOST_IN_USE]:
        count[MOST_IN_USE] = count[IN_USE]
    m.first[msg] = first
    m.topic_len[msg] = topic_len
    m.payload_len[msg] = payload_len
    m.refs[msg] = 1
    m.flags[msg] = flags
    return msg


def unref(columns, msg):
    """One reference less; the last one frees the message and its blocks."""
    _, _, m, _ = columns
    m.refs[msg] -= 1
    if not m.refs[msg]:
        count = m.count
        m.next[msg] = count[FIRST_FREE]
        count[FIRST_FREE] = msg
        count[IN_USE] -= 1
        m.arena.drop(m.first[msg])


def put_ack(columns, conn, first, value):
    """Four bytes to the connection that is being read, whose space is certain."""
    _, _, _, c = columns
    at = c.tx_end[conn]
    assert at + 4 <= (conn + 1) * c.tx_bytes
    c.tx[at : at + 4] = bytes((first, 2, value >> 8, value & 255))
    c.tx_end[conn] = at + 4
    if not c.out[conn]:
        c.mark_dirty(conn)

# columns.py - makes the table of columns that the inner loops use, when all tables exist.
# Loaded only for that. Allocates the table.
#
# On MicroPython it is the table `o` of *_viper.py, with all columns that these use. The comment
# over each row declares the index of its first column and the names of all; *_viper.py repeat
# these indexes as const(). On CPython broker.tables are four tables, which *_cpython.py unpack in
# this order, and fast_columns, which the fast path gets, is the broker itself. `make lint`
# compares both with this file (tools/dev/tidy/columns.py).
from slotmq.platform.runtime import MICROPYTHON, const

_NONE = const(0xFFFF)

if MICROPYTHON:
    from slotmq.fast.bytes_viper import ALIGN, table

    def make(broker):
        c = broker.conns
        d = broker.deliveries
        m = broker.messages
        s = broker.sessions
        r = broker.subscriptions.routes
        # 0: _R_MASK _R_WIDTH _R_GEN _R_LEN _R_TEXT _R_STATE _C_OUT _C_TX_END
        p = (len(r.gen) - 1, r.topic_bytes, r.gen, r.len, r.text, r.state, c.out, c.tx_end)
        # 8: _C_TX_LIMIT _C_TX _C_DIRTY _C_COUNTS _C_POOL _C_CONN_OF _D_SESSION
        p += (c.tx_limit, c.tx, c.dirty, c.counts, broker.subscriptions.pool, s.conn, d.session)
        # 15: _D_MSG _D_PREV _D_NEXT _D_STATE _D_FLAGS _D_COUNT _S_HEAD _S_TAIL _S_CURSOR
        p += (d.msg, d.prev, d.next, d.state, d.flags, d.count, s.head, s.tail, s.cursor)
        # 24: _S_QUEUED _S_INFLIGHT _D_IS_PENDING _D_WINDOW _M_REFS _M_FIRST _M_NEXT _M_COUNT
        p += (s.queued, s.inflight, d.is_pending, d.window, m.refs, m.first, m.next, m.count)
        # 32: _M_TOPIC_LEN _M_PAYLOAD_LEN _M_FLAGS _D_PENDING _S_SCANS _M_ARENA
        p += (m.topic_len, m.payload_len, m.flags, d.pending, s.scans, m.arena.state)
        # 38: _M_CHAIN _M_DATA _C_SESSION _STATS _CLOCK _PKT
        p += (m.arena.next, m.arena.data, c.session, broker.stats, broker.clock, broker.pkt)
        # 44: _S_IDS _S_ID_COUNT _S_PROGRESS _R_FIRST _R_END
        # 49: _C_STATE _C_BUFFERED _C_REASSEMBLY _S_IDS_HIGH
        p += (
            s.ids,
            s.id_count,
            s.progress,
            r.first,
            r.end,
            c.state,
            c.buffered,
            c.reassembly,
            s.ids_high,
        )
        # 53: _C_LAST_ACTIVITY _ALIGN_AT _D_SLOTS _M_SLOTS _S_RECEIVED
        p += (c.last_activity, ALIGN, d.slots, m.slots, s.received)
        # 58: _S_MOST _LAST _ONE _S_DIRTY
        p += (s.received if s.id_msg is None else 0, _NONE, 0, s.dirty)
        broker.tables = broker.fast_columns = c.columns = table(p)

else:

    def make(broker):
        broker.tables = broker.deliveries, broker.sessions, broker.messages, broker.conns
        broker.fast_columns = broker

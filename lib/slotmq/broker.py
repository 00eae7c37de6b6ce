# broker.py - owns the tables; passes packets to their handlers; ends connections.
#
# Broker does no I/O and reads no clock. The loop passes it bytes (receive) and the time in
# tenths of a second (now, tick), and asks how many bytes it may read (readable).
# Handlers never write to a socket. They fill outgoing buffers, often those of OTHER
# connections, and the loop writes these at the end of the turn. If a buffer is full before
# that, they call the loop's flush() or write() at once. Handlers do not close connections
# either: end() marks a connection, and the loop closes it.
# Allocates all tables at construction, nothing afterwards.
import gc

from slotmq.config.limits import Limits
from slotmq.config.settings import Settings
from slotmq.constants import (CONNECTED, ENDING, FIVE, INFLIGHT_BYTES, LINGERING, LOST,
    MAX_INFLIGHT, NONE, NOTICE, PENDING_COUNT, POLICY_DISCONNECT, POLLING)
from slotmq.delivery import outgoing, retain, routing
from slotmq.fast import fast_path, new_packet, send
from slotmq.platform import heap, ondemand
from slotmq.platform.arrays import i32, u16
from slotmq.platform.runtime import MICROPYTHON
from slotmq.protocol.dispatch import FIRST, HANDLERS, receive
from slotmq.tables.connections import Connections
from slotmq.tables.deliveries import Deliveries
from slotmq.tables.messages import Messages
from slotmq.tables.retained import Retained
from slotmq.tables.sessions import Sessions
from slotmq.tables.subscriptions import Subscriptions


def _create(table, *args):
    # A collection first, so that the table fills the holes that the one before it left. On CPython
    # it would only take time, in a large program 100 ms.
    MICROPYTHON and gc.collect()
    return table(*args)


def _make_state(broker, limits):
    # A topic at its beginning, a filter at its end
    broker.work = bytearray(2 * limits.topic_bytes + 64)
    broker.rx = bytearray(limits.rx_bytes)
    # [PACKETS_IN to BYTES_OUT; from 7 on status/log_full_tables.py; 19, 20: publishing.py;
    # 21: QoS 0 without space in a buffer; 22, 23: is a bound of deliveries, messages noted?
    # 24 to 26: accepted connections, clients that were let in, sessions that expired]
    broker.stats = i32(28)
    # How often each of stats passed timers.CARRY; [7]: how often the zero of now has moved
    # (tables/epoch.py)
    broker.carried = i32(8)
    # The connection whose packets are being handled. None: a callback or a hook of the program
    # has raised, see caught()
    broker.reading = NONE
    # How long may the next turn wait for events? 0: as long as turn() says; 1: not at all,
    # since scans go on or the program has something to send; 2: a moment, for lwIP's memory
    broker.turn_soon = 0
    broker.scan_left = 0  # slots of the table of retained messages that a scan may look at
    broker.queued_to_self = False  # is a message of `reading` to itself queued?
    broker.ending = u16(limits.connections + 1)  # connections to be closed at the turn's end
    broker.ending_count = 0
    broker.loop = None
    broker.flush = broker.write = None  # the loop's methods
    broker.journal = None  # stores what must survive a power cut
    # Does the journal refuse new promises? True: its medium is full; _FOR_THIS_PACKET of
    # journal/compaction.py: only this packet would need more than is left
    broker.journal_full = False
    # Not 0 while the tables have half of a packet: nothing is committed, so with a journal
    # nothing is written to a socket either
    broker.no_commit = 0
    broker.record = None  # the RecordInterceptor
    broker.bridges = None  # the Bridges of bridge/bridges.py
    broker.log = None  # log(bit, text), called only if log_mask has the bit, or with bit 0
    broker._log_mask = 0
    broker.pkt = new_packet(limits.max_packet)
    broker.five = None
    broker.said = {}  # of platform/said.py, delivery/refusing_bound.py
    # handle_fast(fast_path, conn, buf, at, end) handles packets that need no decision.
    # control.py sets fast_path: fast_columns, or None while each packet must be looked at.
    broker.handle_fast = fast_path
    # By packet type, before and after CONNECT is accepted
    broker.first_handlers = FIRST
    broker.handlers = HANDLERS


class Broker:
    def __init__(self, limits=None, settings=None):
        self.limits = limits = limits or Limits()
        self.settings = settings = settings or Settings()
        settings.check(limits)
        if settings.mqtt_versions == 5:  # code first, then tables
            from slotmq.v5.extension import Version5
        if settings.sys_interval:
            from slotmq.status.sys_state import Sys
        if settings.password_file:
            from slotmq.access.users import Users
        columns = ondemand.take("fast.columns", 0)
        ondemand.take("control", 0)
        access = None
        if settings.acl_file or settings.password_file:
            access = ondemand.take("access.owners", 0)
        # MicroPython searches for free memory from the beginning of the heap. A hole before
        # the tables, released at the end, keeps the search for short-lived objects short.
        hole = bytearray(limits.hole_bytes())
        self.now = 0
        self.clock = i32(13)  # [now, for the fast path; times of status/log_full_tables.py ...]
        self.auto_id = 0
        self.connected = 0  # network connections that have a session
        self.messages = _create(Messages, limits)
        self.sessions = _create(Sessions, limits, settings.qos2_delivery == "release")
        self.subscriptions = _create(Subscriptions, limits, settings.allow_duplicate_messages)
        self.conns = _create(Connections, limits, self.subscriptions.pool, self.sessions.conn)
        self.deliveries = _create(Deliveries, limits)
        self.retained = _create(Retained, limits, self.messages, self.deliveries.window)
        self.on_reload = None
        # Which user a session belongs to, and who may do what; None: nobody is asked
        self.owners = self.acl = None
        if access:
            _create(access.make, self)
        self.users = None
        if settings.password_file:
            self.users = _create(Users, limits, settings.password_file)
        self.sys = Sys(self, settings.sys_interval) if settings.sys_interval else None
        _make_state(self, limits)
        if settings.mqtt_versions == 5:
            self.five = Version5(self)
            self.first_handlers = self.five.first
        del hole, access
        MICROPYTHON and gc.collect()
        # sets tables and fast_columns, the first argument of functions in fast/
        columns.make(self, settings.acl_file)
        self.hooks = None

    def apply_settings(self):
        """Take over the settings that may change while running."""
        ondemand.take("control", self.now).apply_settings(self)

    @property
    def log_mask(self):
        """Types of entries that are logged, as bits; see platform/log.py."""
        return self._log_mask

    @log_mask.setter
    def log_mask(self, mask):
        self._log_mask = mask
        self.apply_settings()

    @property
    def hooks(self):
        """An object with any of may_connect(client_id, user_name, password) -> return code,
        may_publish(client_id, topic), may_subscribe(client_id, filter, qos) -> bool,
        and those of embed/hooks.py; or None."""
        return self._hooks

    @hooks.setter
    def hooks(self, hooks):
        self._hooks = hooks
        self.may_connect = getattr(hooks, "may_connect", None)
        self.may_publish = getattr(hooks, "may_publish", None)
        self.may_subscribe = getattr(hooks, "may_subscribe", None)
        self.apply_settings()

    def drain(self):
        """Send to every session that has got a delivery, or whose window has space again."""
        deliveries = self.deliveries
        sessions = self.sessions
        is_bounded = deliveries.count[INFLIGHT_BYTES]
        pending = deliveries.pending
        conn = NONE
        try:
            while pending[PENDING_COUNT]:
                session = pending[pending[PENDING_COUNT]]
                pending[PENDING_COUNT] -= 1
                deliveries.is_pending[session] = 0
                conn = sessions.conn[session]
                if conn == NONE:
                    continue
                level = self.conns.level[conn]
                if level < 5 and not (is_bounded or sessions.scans[session]):
                    # Mostly that is all. There is no space for it during a chunked send.
                    sessions.progress[session] = self.now
                    if not send(self.tables, session, conn, deliveries.window[MAX_INFLIGHT]):
                        continue
                self.resume(conn)
        except Exception:  # its buffer may have half a packet
            if conn != NONE:
                self.end(conn, LOST)
            raise

    def resume(self, conn):
        """Send what waits for space in tx or in the window: a chunked send, deliveries, retained
        messages."""
        session = self.conns.session[conn]
        try:
            if session == NONE:
                return
            if self.conns.chunked_msg[conn] == NONE or outgoing.fill(self, conn):
                if self.sessions.cursor[session] != NONE:
                    routing.drain(self, session)
                if self.sessions.scans[session]:
                    retain.scan(self, session)
        except Exception:  # its buffer may have half a packet
            self.end(conn, LOST)
            raise

    def resume_scans(self):
        """Continue the scans for retained messages that the last turn interrupted."""
        self.turn_soon = 0
        for conn in range(self.conns.top):
            session = self.conns.session[conn]
            if session != NONE and self.sessions.scans[session]:
                self.resume(conn)
        self.users and self.users.slice(self, receive)

    def end(self, conn, reason):
        """Mark a connection as ending; the loop flushes and closes it at the turn's end."""
        conns = self.conns
        state = conns.state[conn]
        if state == ENDING:
            return
        # First, so that it happens once: goodbye() may call end() again, or raise.
        conns.state[conn] = ENDING
        conns.reason[conn] = reason
        self.ending[self.ending_count] = conn
        self.ending_count += 1
        self.turn_soon = 1  # a turn that begins now closes it, though nothing else happens
        if state in (CONNECTED, FIVE) and conns.level[conn] == 5:
            self.five.goodbye(self, conn, reason)
        if self._log_mask & NOTICE and state != LINGERING:  # whose end was logged before
            ondemand.log_event(self, "ended", conn, reason)

    def caught(self, failed, conn):
        """An exception reached the loop: log and count it, end the connection that it concerns.

        -> True: the program gets it, since its own callback or hook has raised it, or the wait for
        events. conn: the connection that the loop served; below 0: none."""
        is_lifted = heap.settle()
        is_memory = isinstance(failed, MemoryError)
        reading = self.reading
        self.reading = NONE
        self.no_commit = 0
        is_programs = reading is None or conn == POLLING and not is_memory
        if is_programs or is_memory and is_lifted:
            failed = None  # no defect: with the heap lifted a MemoryError is a refusal
        elif is_memory:
            self.loop.exhausted += 1
        else:
            self.loop.exceptions += 1
        if failed or is_memory:
            ondemand.log_event(self, "caught", conn, failed)
        if reading is not None and reading != NONE:
            conn = reading
        elif is_programs or not failed:
            return is_programs
        if 0 <= conn < NONE:
            self.end(conn, POLICY_DISCONNECT if is_memory else LOST)

    def listen(self, host="127.0.0.1", port=1883, max_connections=0, options=None):
        """Open a listener; -> its (host, port). OSError where the address is taken.

        max_connections=None counts its clients with those of the listener before. options: its
        own max_qos, max_topic_alias and so on, by name."""
        self._loop()
        control = ondemand.take("control", self.now)
        return control.listen(self, host, port, max_connections, options)

    def turn(self, timeout_ms=250):
        """One turn of the loop: wait for at most this time, then handle what was received."""
        loop = self.loop
        if loop is None:
            loop = self._loop()
        loop.turn(timeout_ms)

    def run(self):
        """Run turns until stop(), then publish or store the wills and close all sockets."""
        self._loop().run()

    def stop(self):
        """Make run() end after this turn."""
        self._loop().stopping = True

    def reload(self):
        """Read the configuration again, if there is one, and the acl_file."""
        self.on_reload and self.on_reload()

    def publish(self, topic, payload=b"", qos=0, retain=False):
        """Publish as a client would, without asking a hook. False: a table is full, and nobody
        gets the message. ValueError: no client may send this topic name, QoS, RETAIN or size."""
        own = ondemand.take("embed.own_messages", self.now)
        return own.publish(self, topic, payload, qos, retain)

    def __getattr__(self, name):
        # compact(), dump_tree(), and subscribe(), client(), serve() of embed/in_process.py: a
        # broker that does not use them has no code for them.
        from slotmq.embed import publishing

        return publishing.find(self, name)

    def _loop(self):
        if self.loop is None:
            ondemand.take("control", self.now).make(self)
        return self.loop

# broker.py - the tables, the way of a packet to its handler, and what ends a connection.
#
# Broker does no I/O and knows no clock: the loop gives it bytes (receive) and the
# time in tenths of a second (now, tick), and asks what may be read (readable).
# Handlers never write: they fill outgoing buffers, often those of OTHER
# connections, and the loop carries these out at the end of the turn. Only where one is full
# before that, the loop's flush() and write() are called at once. Nothing a handler does
# ends a connection on the spot either: end() marks it and the loop reaps it.
# Allocates all tables at construction, nothing afterwards.
import gc

from slotmq import deliver, heap, lifecycle, outbox, retain
from slotmq.arrays import i32, u16
from slotmq.connections import Connections
from slotmq.deliveries import Deliveries
from slotmq.intake import FIRST
from slotmq.limits import Limits
from slotmq.loop import Loop
from slotmq.messages import Messages
from slotmq.retained import Retained
from slotmq.runtime import (
    clock,
    const,
    lane_columns,
    make_poller,
    new_packet,
    open_listener,
    queue_columns,
)
from slotmq.sessions import Sessions
from slotmq.settings import Settings
from slotmq.subscriptions import Subscriptions

_NONE = const(0xFFFF)
_ENDING = const(3)
_FIVE = const(4)
_FULL = const(6)
_STOPPING = const(10)
_NOTICE = const(4)
_DEBUG = const(64)
_PACKETS_IN = const(0)  # this and those that follow: indexes of Broker.stats
_PACKETS_OUT = const(1)
_PUBLISH_IN = const(2)
_PUBLISH_OUT = const(3)
_DROPPED = const(4)
_BYTES_IN = const(5)
_BYTES_OUT = const(6)

# Why a connection ended, by result; for the log. One text: it takes a third of the heap.
WHY = """\

left
malformed packet
protocol error
packet too large
refused
table full
taken over by the same client id
timed out
lost
broker stops
left with its will"""


def _made(table, *args):
    # What making the table before has left lies around it: this one fits in there.
    gc.collect()
    return table(*args)


class Broker:
    def __init__(self, limits=None, settings=None):
        self.limits = limits = limits or Limits()
        self.settings = settings = settings or Settings()
        settings.check(limits)
        if settings.mqtt_versions == 5:  # code first, then tables
            from slotmq.version5 import Version5
        if settings.sys_interval:
            from slotmq.sysinfo import Sys
        # What is allocated for a moment is searched for from the heap's beginning: a hole
        # before the tables, given back at the end, keeps that search short.
        hole = bytearray(limits.hole_bytes())
        self.now = 0
        self.clock = i32(1)  # now, for the lane
        self.auto_id = 0
        self.connected = 0  # network connections that have a session
        self.messages = _made(Messages, limits)
        self.sessions = _made(Sessions, limits, settings.qos2_delivery == "release")
        self.subscriptions = _made(Subscriptions, limits, settings.allow_duplicate_messages)
        self.conns = _made(Connections, limits, self.subscriptions.pool, self.sessions.conn)
        self.deliveries = _made(Deliveries, limits)
        self.retained = _made(Retained, limits)
        self.queue = queue_columns(self.deliveries, self.sessions, self.messages, self.conns)
        self.sys = Sys(self, settings.sys_interval) if settings.sys_interval else None
        self.on_reload = None
        self.work = bytearray(2 * limits.topic_bytes + 64)
        self.rx = bytearray(limits.rx_bytes)
        self.stats = i32(7)
        self.carried = i32(7)  # of stats, see timers.CARRY
        self.current = _NONE  # the connection that is being read
        self.scanning = False  # are retained messages owed that only want another turn?
        self.slots_left = 0
        self.queued_to_self = False  # has it been given one of its own by way of the queue?
        self.ending = u16(limits.connections + 1)
        self.ending_count = 0
        self.loop = None
        self.flush = self.write = None  # the loop's
        self.journal = None  # keeps what is promised through a power cut
        self.held = 0  # a packet is only half handled: nothing is kept, nothing may leave
        self.log = None  # log(bit, text), asked only where log_mask has the bit, or with 0
        self._log_mask = 0
        self.pkt = new_packet(limits.max_packet)
        self.five = None
        self.first_handlers = FIRST
        if settings.mqtt_versions == 5:
            self.five = Version5(self)
            self.first_handlers = self.five.first
        del hole
        gc.collect()
        self._lane = lane_columns(self)
        self.hooks = None

    def apply_settings(self):
        """Take over the settings that may change while running."""
        s = self.settings
        limits = self.limits
        self.max_connections = s.max_connections if s.max_connections > 0 else limits.connections
        self.max_inflight = s.max_inflight_messages or limits.inflight
        self.max_queued = s.max_queued_messages or limits.queued
        self.deliveries.window[0] = self.max_inflight
        self.deliveries.window[1] = self.max_queued
        self.max_qos = s.max_qos
        self.retain_available = s.retain_available
        self.size_limit = s.message_size_limit
        self.queue_qos0 = s.queue_qos0_messages
        self.upgrade_qos = s.upgrade_outgoing_qos
        self.pkt[10] = s.max_packet_size or limits.max_packet
        self.when_no_message = _FULL if s.when_full["messages"] == "disconnect" else 0
        self.drop_oldest_message = s.when_full["messages"] == "drop_oldest"
        self.drop_oldest = s.when_full["deliveries"] == "drop_oldest"
        self.drop_oldest_session = s.when_full["sessions"] == "drop_oldest"
        # plain: a PUBLISH needs no further question
        self.plain = self.may_publish is None and not self.upgrade_qos and not self.size_limit
        # lane: packets without a question go the short way; not while each is logged
        short = self.plain and self.max_qos == 2 and not self.queue_qos0
        short = short and not self.subscriptions.every and not self.log_mask & _DEBUG
        self.lane = self._lane if short else None
        if self.five:
            self.five.apply_settings(self)

    @property
    def log_mask(self):
        """Types of entries that are logged, as bits; see log.py."""
        return self._log_mask

    @log_mask.setter
    def log_mask(self, mask):
        self._log_mask = mask
        self.apply_settings()

    @property
    def hooks(self):
        """An object with any of may_connect(client_id, user_name, password) -> return code,
        may_publish(client_id, topic), may_subscribe(client_id, filter, qos) -> bool; or None."""
        return self._hooks

    @hooks.setter
    def hooks(self, hooks):
        self._hooks = hooks
        self.may_connect = getattr(hooks, "may_connect", None)
        self.may_publish = getattr(hooks, "may_publish", None)
        self.may_subscribe = getattr(hooks, "may_subscribe", None)
        self.apply_settings()

    def opened(self, stream):
        """A slot for a new network connection; NONE where none is left."""
        return self.conns.take(stream, self.now)

    def pump_pending(self):
        """Go on with every connected session for which something was queued or freed."""
        deliveries = self.deliveries
        pending = deliveries.pending
        while pending[0]:
            session = pending[pending[0]]
            pending[0] -= 1
            deliveries.is_pending[session] = 0
            conn = self.sessions.conn[session]
            if conn != _NONE:
                self.go_on(conn)

    def go_on(self, conn):
        """Send what waits for room or for the window: parts, deliveries, retained messages."""
        session = self.conns.session[conn]
        if session != _NONE and outbox.fill(self, conn):
            if self.sessions.cursor[session] != _NONE:
                deliver.pump(self, session)
            if self.sessions.scans[session]:
                retain.scan(self, session)

    def scan_on(self):
        """Go on with the scans for retained messages that were cut off in the last turn."""
        self.scanning = False
        for conn in range(self.conns.top):
            session = self.conns.session[conn]
            if session != _NONE and self.sessions.scans[session]:
                self.go_on(conn)

    def settle_ending(self):
        """Let connections that are ending go of their sessions at once: there is need."""
        for i in range(self.ending_count):
            lifecycle.detach(self, self.ending[i])

    def end(self, conn, reason):
        """Mark a connection as ending; the loop flushes and closes it at the turn's end."""
        conns = self.conns
        if conns.state[conn] == _ENDING:
            return
        if conns.state[conn] == _FIVE:
            self.five.goodbye(self, conn, reason)
        conns.state[conn] = _ENDING
        conns.reason[conn] = reason
        self.ending[self.ending_count] = conn
        self.ending_count += 1
        if self.log_mask & _NOTICE and conns.session[conn] != _NONE:
            heap.lift()
            who = self.sessions.client_id(conns.session[conn]).decode()
            why = "reason %d" % reason if reason & 0x80 else WHY.split("\n")[reason]
            self.log(_NOTICE, "Client " + who + " disconnected: " + why + ".")
            heap.drop()

    def out_of_memory(self):
        """The heap was too small for what the control plane had to do just now."""
        conn = self.current
        self.current = _NONE
        self.held = 0
        if conn != _NONE:
            self.end(conn, _FULL)

    def closed(self, conn):
        """The stream is closed: let go of everything that hung on it."""
        lifecycle.release(self, conn)

    def publish_wills(self):
        """An orderly stop: all wills go out, but for those that wait and will be kept."""
        self.settle_ending()
        for session in range(self.sessions.slots):
            if not self.journal or self.sessions.conn[session] != _NONE:
                lifecycle.publish_will(self, session)

    def shut_down(self):
        """An orderly stop: every connection ends."""
        for conn in range(self.conns.slots):
            if self.conns.state[conn]:
                self.end(conn, _STOPPING)

    def listen(self, host="127.0.0.1", port=1883, max_connections=0):
        """Open a listener; -> its (host, port). OSError where the address is taken.

        max_connections=None counts its clients with those of the listener before."""
        return open_listener(self._loop(), self.settings, host, port, max_connections)

    def turn(self, timeout_ms=250):
        """One turn of the loop: waits so long at most, handles what has come."""
        self._loop().turn(timeout_ms)

    def run(self):
        """Turn until stop(), then end in order: wills go out, sockets are closed."""
        self._loop().run()

    def stop(self):
        """Make run() end after this turn."""
        self._loop().stopping = True

    def reload(self):
        """Read the configuration again, where there is one."""
        self.on_reload and self.on_reload()

    def compact(self):
        """Rewrite the journal."""
        self.journal and self.journal.compact()

    def dump_tree(self):
        """Print the subscription tree, and log it where a log is kept in a file."""
        from slotmq.tree import dump

        dump(self)

    def publish(self, topic, payload=b"", qos=0, retain=False):
        """Publish as a client would. ValueError: the topic name or the size is not legal."""
        from slotmq import local

        local.publish(self, topic, payload, qos, retain)

    def _loop(self):
        if self.loop is None:
            self.loop = Loop(self, make_poller(self), clock)
        return self.loop

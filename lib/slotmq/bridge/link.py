# link.py - one bridge: its place in the tables, its state, and when it tries again.
#
# Owns a slot of `connections`, also while there is no connection, so that no crowd of clients
# takes it; and the session of its local client id, with a subscription for each topic that goes
# out (bridge/session.py). The slot counts as a connected client. While the bridge waits, it is
# itself the slot's stream, which takes nothing; then the stream is the socket, or the Mapped of
# bridge/mapping.py.
#
#   state       event                              then
#   WAITING     it is due and wanted: _dial()      CONNECTING; a name that is looked up: WAITING
#   CONNECTING  CONNACK lets it in: up()           UP; is_told when each SUBACK has come
#               CONNACK refuses, connect_timeout   the connection ends
#   UP          PINGREQ, _is_idle(), a probe       UP, or it leaves: the connection ends
#   any         the connection has ended: _lost()  WAITING, with the slot taken again
#
# While it is CONNECTING the slot is NEW, as one that waits for CONNECT. The packets until it is
# UP are in bridge/handshake.py; from then on everything is as for a client. Control plane:
# allocates.
from slotmq.constants import (BLOCKED, CONNECTED, CONNECTING, EMFILE, LEFT, NEW, NONE, NOTICE, OK,
    PINGRESP_TYPE, REFUSED, TYPE, WARNING)
from slotmq.delivery import lifecycle, routing
from slotmq.delivery.outgoing import put_ack, space
from slotmq.embed.packets import packet_of
from slotmq.fast import copy
from slotmq.platform import ondemand
from slotmq.platform.dial import dial, find, noise

_POLL = 1 | 4 | 16  # for reading, for writing, for a reset
# Properties of CONNACK
_SERVER_KEEP_ALIVE = 0x13
_RETAIN_AVAILABLE = 0x25
_PROBED = 600  # tenths of a second until the first address is tried
_NEXT_ADDRESS = 10  # tenths of a second until the next address is tried
_WAITING = 0
_UP = 2
_TIMES = ("due", "suback_due", "busy", "pong", "next_probe", "began", "wake")
_STATES = ("waiting", "connecting", "up")


class Bridge:
    def __init__(self, owner, options):
        self.owner = owner
        self.broker = owner.broker
        self.options = options
        module = self.module("bridge.options")
        remote, local, self.state_topic = module.names_of(options)
        self.remote_id = remote.encode()
        self.local_id = local.encode()
        clean = options.local_cleansession
        self.is_clean = options.cleansession if clean is None else clean
        self.ins = [topic for topic in options.topics if topic.comes_in]
        self.outs = [topic for topic in options.topics if topic.goes_out]
        self.echoes = module.may_echo(options)
        self.is_mapped = module.is_mapped(options)
        more = [len(each.prefixes[1]) - len(each.prefixes[0]) for each in self.outs]
        self.growth = max(more + [0])  # bytes that a packet grows by on its way out, at most
        # Its place
        self.conn = self.session = NONE
        self.is_held = False  # has it a slot without a session?
        self.stream = self
        self.host = None  # the name that is in the other broker's certificate
        # Its state. These are in tenths of a second; see shift().
        self.state = _WAITING
        self.due = 0  # the next attempt, or the next PINGREQ
        self.suback_due = 0  # until when the SUBACKs must have come
        self.busy = self.pong = 0  # last message, last PINGRESP
        self.next_probe = 0
        self.began = 0  # when the connection was up
        self.wake = 0  # until then it has nothing to do while it is up
        self.pause = 0  # how long the last pause between two attempts was
        self.address = self.attempts = 0
        self.is_over = False  # has it ended for good (start_type once)?
        self.is_soon = False  # must the next attempt follow at once?
        self.has_dropped = False  # since it left as a lazy one
        # What CONNECT says, and what has been answered
        self.wants_5 = options.bridge_protocol_version == "mqttv50"
        self.module("bridge.handshake").speak(self, self.wants_5)
        self.closed = 0  # how often there was no CONNACK, since the last one to 5.0
        self.is_simple = False  # is the will one of QoS 0, which is not retained?
        self.remote = {}  # what CONNACK of version 5 has said
        self.asked = self.answered = 0  # of `requests`
        self.is_new = True  # has the other broker not had our retained messages yet?
        self.is_told = True  # has it been said that it is up?
        self.owed = b""  # acknowledgements of what was skipped
        # A connection to the first address, while another one is up; what must still leave, and
        # what has come
        self.probe = self.probe_pipe = None
        self.probe_rest = self.probe_answer = b""
        # For the log and $SYS
        self.why = None  # a text: why the connection ends, if the result does not say it
        self.losses = 0  # how often a connection that was up has ended
        self.refusals = {}  # why: how many messages
        self.said = []  # which of these the log has, for this connection

    def module(self, name):
        """A module that is loaded on demand."""
        return ondemand.take(name, self.broker.now)

    def shift(self, by, least):
        """The clock's zero moves by so many tenths of a second, see tables/epoch.py."""
        for name in _TIMES:
            setattr(self, name, max(getattr(self, name) - by, least))

    # As the stream of its slot, while there is no connection

    def write(self, buf, off, n):
        return None

    def send(self, data):
        return 0

    def publish(self):
        """Marks a client that is part of the program, see access/owners.py."""

    def fileno(self):
        return -1

    def close(self):
        pass

    def go_on(self):
        pass

    # Its place

    def begin(self):
        """Open the session, which is kept from now on whether or not there is a connection."""
        self._hold()
        broker = self.broker
        if self.conn == NONE:
            raise OSError(EMFILE, "full: limit connections")
        self.tell(b"0")
        if self.is_clean:
            return
        mask = broker._log_mask
        broker._log_mask = 0  # nobody has connected yet
        is_open = self.module("bridge.session").enter(self)
        broker._log_mask = mask
        if not is_open:
            broker.end(self.conn, REFUSED)
            self.is_held = False
            raise OSError(EMFILE, "full: limit connections, sessions, users")
        lifecycle.detach(broker, self.conn)
        broker.conns.state[self.conn] = NEW
        self.is_held = True

    def _hold(self):
        # Take the slot.
        broker = self.broker
        self.state = _WAITING
        self.stream = self
        self.conn = conn = broker.conns.take(self, broker.now)
        if conn == NONE:
            return
        broker.conns.quota[conn] = [NONE, 1, 0, None]
        broker.loop.of_stream[self] = conn
        self.is_held = True

    # Its states

    def step(self):
        """Called after each turn."""
        conns = self.broker.conns
        now = self.broker.now
        if self.conn == NONE or conns.stream[self.conn] is not self.stream:
            self._lost()
            if self.conn == NONE:
                return
        if self.state == _WAITING:
            conns.opened[self.conn] = now  # it is not late
            if now >= self.due and self._wants():
                self._dial()
        elif conns.state[self.conn] == CONNECTED:
            self._keep(now)

    def text(self):
        """Its state as a word."""
        return _STATES[_WAITING if self.state == _UP and not self.is_up() else self.state]

    def is_up(self):
        return self.state == _UP and self.broker.conns.stream[self.conn] is self.stream

    def _wants(self):
        # Is it to connect? If it is lazy, as soon as enough messages wait, or one was dropped, or
        # another one like the last would be.
        if self.options.start_type != "lazy":
            return not self.is_over
        broker = self.broker
        session = self.session
        sessions = broker.sessions
        waiting = sessions.queued[session] + sessions.inflight[session]
        if not waiting or self.has_dropped or waiting >= self.options.threshold:
            return self.has_dropped or waiting > 0
        messages = broker.messages
        size = messages.blocks(broker.deliveries.msg[sessions.tail[session]]) * messages.arena.size
        return broker.journal_full or not routing.has_space(broker, session, size=size)

    def _dial(self):
        broker = self.broker
        conns = broker.conns
        loop = broker.loop
        try:
            made = self.reach(self.address, loop.lwip or broker.settings.set_tcp_nodelay)
            if not made:
                return
        except (OSError, ValueError) as error:
            words = self.module("status.log_bridges")
            why = words.reason_of(error, self.options.bridge_bind_address)
            self.log(WARNING, "cannot connect to %s (%s)" % (self.where(), why))
            self._retry()
            return
        socket, peer = made
        self.host = self.options.addresses[self.address][0]
        stream = self.owner.stream_of(self, socket)
        conn = self.conn
        del loop.of_stream[self]
        self.stream = conns.stream[conn] = conns.attached[conn] = stream
        loop.of_stream[stream] = conn
        conns.source[conn] = peer
        conns.opened[conn] = broker.now
        packet = self.module("bridge.handshake").connect_packet(self)
        base = conn * conns.tx_bytes
        copy(conns.tx, base, packet, 0, len(packet))
        conns.tx_end[conn] = base + len(packet)
        conns.out[conn] = BLOCKED
        self.state = CONNECTING
        loop.poller.register(stream, _POLL)

    def reach(self, address, nodelay):
        """Begin to connect to one of its addresses; -> (socket, peer), or None: its name is being
        looked up. OSError, ValueError: it is not possible."""
        host, port = self.options.addresses[address]
        found = find(host, port, self.broker.now)
        if found is None:
            self.broker.turn_soon = self.broker.turn_soon or 2
            return None
        found = found[self.attempts % len(found)]
        self.attempts += 1
        return dial(found, self.options.bridge_bind_address, nodelay)

    def up(self, present):
        """CONNACK lets it in. present: does the other broker know it? False: no space here."""
        session = self.module("bridge.session")
        if not present:
            session.forget_received(self)
        if not session.enter(self):
            self.log(WARNING, "no space here: sessions, users or subscriptions")
            return False
        if present and not self.is_new:
            session.drop_scans(self)
        self.is_new = self.is_told = False
        self.wake = 0
        self.said = []
        self.owed = b""
        self.state = _UP
        self.began = self.broker.now
        self.next_probe = self.broker.now + _PROBED
        self.asked = self.answered = self.attempts = 0
        self.due = self.broker.now + self.keep_alive() * 10
        self.broker.turn_soon = 1
        return True

    def _keep(self, now):
        # What an open connection needs
        if self.owed and self.put(self.owed):
            self.owed = b""
        if not self.is_told and not self.module("bridge.handshake").ask(self):
            return
        if now >= self.due and self.keep_alive() and self.put(b"\xc0\0"):
            self.due = now + self.keep_alive() * 10
        self.wake = now if self.owed or self.asked < len(self.requests) else now + 1
        if self.address and not self.options.round_robin and now >= self.next_probe:
            self.module("bridge.probe").begin_probe(self)
        if self.options.start_type == "lazy" and self._is_idle():
            self._leave()

    def _is_idle(self):
        # Has no message passed for idle_timeout?
        sessions = self.broker.sessions
        last = self.broker.conns.last_activity[self.conn]
        if last != self.pong:
            self.busy = last
        last = max(self.busy, sessions.progress[self.session])
        waits = sessions.queued[self.session] + sessions.inflight[self.session]
        return not waits and self.broker.now - last >= self.options.idle_timeout * 10

    def probed(self):
        """The socket of the probe has an event."""
        if self.module("bridge.probe").go_on_probing(self) and self.is_up():
            self.log(NOTICE, "the first address is back")
            self._leave()

    def _leave(self):
        # Until enough messages wait, or it has another address
        self.is_soon = True
        self.has_dropped = False
        self.stop()
        self.broker.end(self.conn, LEFT)

    def stop(self):
        """Leave: the other broker publishes no will, but its text; without space for that, the
        will."""
        self._drop_probe()
        conns = self.broker.conns
        if self.is_up():
            state = self.module("bridge.handshake").state_of(self, b"0")
            if self.put(state + b"\xe0\0"):
                conns.tx_limit[self.conn] = conns.tx_end[self.conn]

    def _drop_probe(self):
        if self.probe:
            self.module("bridge.probe").drop_probe(self)

    def ended(self, reason, number):
        """Its connection ends. number: the error of the socket, or 0."""
        try:
            if self.state != _WAITING:
                self.module("bridge.handshake").ended(self, reason, number)
        except MemoryError:
            pass
        self.why = None

    def _lost(self):
        # The connection has ended, and its slot is another's.
        self.is_held = False
        self.owner.slow.pop(self.conn, None)
        self._drop_probe()
        if self.conn != NONE:
            self.broker.five.packet_max[self.conn] = 0  # it would hold for the next client
        if self.is_clean:
            self.session = NONE
        self.is_over = self.options.start_type == "once" and not self.is_soon
        if self.state == _UP:
            self.losses += not self.is_soon
            self.tell(b"0")
            # One that stood for less than the last pause counts as an attempt that has failed, so
            # a broker that accepts and closes is left alone for longer, or another one is tried.
            # (restart_timeout may have a third number for that, seconds.)
            times = self.options.restart_timeout
            stable = self.pause if isinstance(times, int) or len(times) < 3 else times[2] * 10
            if self.is_soon or self.broker.now - self.began >= stable:
                self.pause = 0
                if not self.options.round_robin:
                    self.address = 0 if self.is_soon else -1
        if self.state != _WAITING:
            self._retry()
        self._hold()

    def _retry(self):
        # Decorrelated jitter: between the first pause and three times the last one.
        options = self.options
        if self.wants_5 and not self.is_5 and (self.state == _UP or not self.is_soon):
            # The other broker may be a newer one now.
            self.module("bridge.handshake").speak(self, True)
        self.state = _WAITING
        if self.is_soon:
            self.is_soon = False
            self.due = self.broker.now
            return
        self.address = (self.address + 1) % len(options.addresses)
        times = options.restart_timeout
        if isinstance(times, int):
            self.pause = times * 10
        else:
            low, high = times[:2]
            wide = max(1, (self.pause or low * 10) * 3 - low * 10)
            self.pause = min(high * 10, low * 10 + noise() % wide)
        pause = min(self.pause, _NEXT_ADDRESS) if self.address else self.pause
        self.due = self.broker.now + pause
        if self.is_over:
            self.log(NOTICE, "no further attempt: start_type once")
        elif options.start_type == "automatic":
            self.log(NOTICE, "the next attempt in %d s, %s" % (pause // 10, self.where()))

    # While it is up

    def handle(self, pkt, buf):
        """A packet that only servers send, or only clients; a result."""
        if pkt[TYPE] == PINGRESP_TYPE:
            self.pong = self.broker.now
            return OK
        return self.module("bridge.handshake").handle(self, pkt, buf)

    def put(self, packet):
        """Send a packet; False: not now."""
        at = space(self.broker, self.conn, len(packet))
        if at < 0:
            return False
        copy(self.broker.conns.tx, at, packet, 0, len(packet))
        self.broker.flush(self.conn)
        return True

    def acknowledge(self, first, packet_id):
        """Answer a message that was skipped, at the latest when there is space."""
        conns = self.broker.conns
        if not self.owed and conns.tx_end[self.conn] + 4 <= (self.conn + 1) * conns.tx_bytes:
            put_ack(self.broker, self.conn, first, packet_id)
            return
        self.wake = 0
        self.owed += packet_of(first, packet_id.to_bytes(2, "big"))
        self.broker.turn_soon = 1

    def keep_alive(self):
        """Seconds between two PINGREQ; 0: none. The other broker may have said them."""
        return self.remote.get(_SERVER_KEEP_ALIVE, self.options.keepalive_interval)

    def mask(self):
        """For the first byte of PUBLISH: does the other broker take RETAIN?"""
        return 0xFF if self.remote.get(_RETAIN_AVAILABLE, 1) else 0xFE

    # What is said about it

    def tell(self, text):
        """Publish its state here."""
        if self.options.notifications:
            publishing = self.module("embed.publishing")
            publishing.send(self.broker, self.state_topic.encode(), text, 1, True)

    def refuse(self, why, text):
        """A message was refused; counted, and logged once for each connection and reason."""
        self.refusals[why] = self.refusals.get(why, 0) + 1
        if why not in self.said:
            self.said.append(why)
            self.log(WARNING, "dropped: " + text)

    def where(self):
        """The address that it is connected to, or will be."""
        host, port = self.options.addresses[self.address]
        return ("[%s]:%d" if ":" in host else "%s:%d") % (host, port)

    def log(self, bit, text):
        """A line about it, of this type."""
        if self.broker._log_mask & bit:
            self.broker.log(bit, "Bridge %r: %s." % (self.options.name, text))

# link.py - one bridge: its connection to the other broker, from the first attempt to its end, and
# the session behind it.
#
# Owns a slot of `connections`, also while there is no connection, so that no crowd of clients
# takes it; and the session of its local client id, with a subscription for each topic that goes
# out. The slot counts as a connected client. While the bridge waits, it is itself the slot's
# stream, which takes nothing; then the stream is the socket, or the Mapped of bridge/mapping.py.
#
#   WAITING     until `due`; then a name may still be looked up
#   CONNECTING  the slot is NEW, as one that waits for CONNECT, so connect_timeout ends it; CONNECT
#               leaves as soon as the socket is writable
#   UP          CONNACK has come: the session is the slot's, and everything is as for a client; it
#               is said when each SUBACK has come
#
# Both sides of PUBLISH and its acknowledgements look alike, so what differs from a client are only
# the packets here: CONNECT, CONNACK, SUBSCRIBE, SUBACK, PINGREQ, PINGRESP. Control plane:
# allocates.
from slotmq.delivery import lifecycle, routing
from slotmq.delivery.outgoing import put_ack, space
from slotmq.embed.packets import field, packet_of
from slotmq.fast import copy, unref
from slotmq.platform import ondemand
from slotmq.platform.dial import dial, find, noise
from slotmq.platform.runtime import const

_NONE = const(0xFFFF)
_NEW = const(1)
_CONNECTED = const(2)
_BLOCKED = const(2)
_MALFORMED = const(2)
_PROTOCOL = const(3)
_LEFT = const(1)
_REFUSED = const(5)
_TIMED_OUT = const(8)
_LOST = const(9)
_ACCEPTED = const(15)
_OK = const(0)
_EMFILE = const(24)
_START = const(2)
_BODY = const(3)
_END = const(4)
_TOTAL = const(5)
_WARNING = const(2)
_NOTICE = const(4)
_POLL = const(1 | 4 | 16)  # for reading, for writing, for a reset
_CLEAN = const(2)
_STATE_WILL = const(4 | 8 | 32)  # with QoS 1, retained
_WILL = const(4)
_NO_RETAIN = const(0x9A)
_NO_QOS = const(0x9B)
# Properties of CONNACK
_SERVER_KEEP_ALIVE = const(0x13)
_MAXIMUM_QOS = const(0x24)
_RETAIN_AVAILABLE = const(0x25)
_PACKET_LIMIT = const(0x27)
_LIMITED = const(6)  # a level: 3.1.1 with packet_max and receive_max
_PLAIN = const(1)  # of Subscriptions.kind
_BRIDGE = const(2)
_OTHER = const(4)
_PASSWORD = const(64)
_USER_NAME = const(128)
_PRIVATE = const(0x80)  # in the protocol level: this client is a bridge
_BAD_LEVEL = const(1)
_BAD_VERSION = const(0x84)
_FAILURE = const(0x80)
_FIRST_ID = const(65500)  # of SUBSCRIBE: those of deliveries are lower
_ANSWER = const(200)  # tenths of a second that SUBACKs may take
_EARLY = const(20)  # tenths of a second from the first packet of TCP to the end
_PROBED = const(600)  # tenths of a second until the first address is tried
_NEXT_ADDRESS = const(10)  # tenths of a second until the next address is tried
_WAITING = const(0)
_CONNECTING = const(1)
_UP = const(2)
_STATES = ("waiting", "connecting", "up")


class Bridge:
    def __init__(self, owner, options):
        self.owner = owner
        self.broker = owner.broker
        self.options = options
        module = ondemand.take("bridge.options", self.broker.now)
        remote, local, self.state_topic = module.names_of(options)
        self.remote_id = remote.encode()
        self.local_id = local.encode()
        clean = options.local_cleansession
        self.is_clean = options.cleansession if clean is None else clean
        self.ins = [topic for topic in options.topics if topic.comes_in]
        self.outs = [topic for topic in options.topics if topic.goes_out]
        self.wants_5 = options.bridge_protocol_version == "mqttv50"
        self._speak(self.wants_5)
        self.closed = 0  # how often there was no CONNACK, since the last one to 5.0
        self.remote = {}  # what CONNACK of version 5 has said
        self.will_flags = _STATE_WILL
        self.echoes = module.may_echo(options)
        self.refusals = {}  # why: how many messages
        self.said = []  # which of these the log has, for this connection
        self.has_dropped = False  # since it left as a lazy one
        self.owed = b""  # acknowledgements of what was skipped
        self.is_mapped = module.is_mapped(options)
        more = [len(each.prefixes[1]) - len(each.prefixes[0]) for each in self.outs]
        self.growth = max(more + [0])  # bytes that a packet grows by on its way out, at most
        self.conn = self.session = _NONE
        self.is_held = False  # has it a slot without a session?
        self.stream = self
        self.secure = None  # with TLS the Secure of its connection
        self.host = None  # the name that is in the other broker's certificate
        self.is_dialled = False  # has its stream been polled for the first time?
        self.state = _WAITING
        self.due = 0  # tenths of a second: the next attempt, or the next PINGREQ
        self.limit = 0  # until when the SUBACKs must have come
        self.asked = self.answered = 0  # of `requests`
        self.busy = self.pong = 0  # tenths of a second: last message, last PINGRESP
        self.is_over = False  # has it ended for good (start_type once)?
        self.address = self.attempts = 0
        # A connection to the first address, while another one is up; what must still leave, and
        # what has come
        self.probe = self.probe_pipe = None
        self.probe_rest = self.probe_answer = b""
        self.next_probe = 0  # tenths of a second
        self.pause = 0  # tenths of a second: the last one between two attempts
        self.began = 0  # tenths of a second: when the connection was up
        self.why = None  # a text: why the connection ends, if the result does not say it
        self.losses = 0  # how often a connection that was up has ended
        self.is_soon = False  # must the next attempt follow at once?
        self.is_new = True  # has the other broker not had our retained messages yet?
        self.is_told = True  # has it been said that it is up?
        self.wake = 0  # tenths of a second: until then it has nothing to do while it is up

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

    # Steps

    def begin(self):
        """Open the session, which is kept from now on whether or not there is a connection."""
        self._hold()
        broker = self.broker
        if self.conn == _NONE:
            raise OSError(_EMFILE, "full: limit connections")
        self._tell(b"0")
        if self.is_clean:
            return
        mask = broker._log_mask
        broker._log_mask = 0  # nobody has connected yet
        is_open = self._enter()
        broker._log_mask = mask
        if not is_open:
            broker.end(self.conn, _REFUSED)
            self.is_held = False
            raise OSError(_EMFILE, "full: limit connections, sessions, users")
        lifecycle.detach(broker, self.conn)
        broker.conns.state[self.conn] = _NEW
        self.is_held = True

    def step(self):
        """Called after each turn."""
        conns = self.broker.conns
        now = self.broker.now
        if self.conn == _NONE or conns.stream[self.conn] is not self.stream:
            self._lost()
            if self.conn == _NONE:
                return
        if self.state == _WAITING:
            conns.opened[self.conn] = now  # it is not late
            if now >= self.due and self._wants():
                self._dial()
        elif conns.state[self.conn] == _CONNECTED:
            self._keep()
            self.wake = now + 1
            if self.owed or self.asked < len(self.requests):
                self.wake = now
            if not self.is_told and self.answered == len(self.requests):
                self.is_told = True
                ondemand.take("bridge.start", now).say_up(self)
            if (
                self.address
                and not self.options.round_robin
                and self.broker.now >= self.next_probe
            ):
                self._probing().begin_probe(self)
            if self.options.start_type == "lazy" and self._is_idle():
                self.is_soon = True  # once enough messages wait
                self.has_dropped = False
                self.stop()
                self.broker.end(self.conn, _LEFT)

    def is_up(self):
        return self.state == _UP and self.broker.conns.stream[self.conn] is self.stream

    def stop(self):
        """Leave: the other broker publishes no will, but its text; without space for that, the
        will."""
        self._drop_probe()
        conns = self.broker.conns
        if self.is_up():
            state = ondemand.take("bridge.start", self.broker.now).state_of(self, b"0")
            if self._put(state + b"\xe0\0"):
                conns.tx_limit[self.conn] = conns.tx_end[self.conn]

    def _hold(self):
        # Take the slot.
        broker = self.broker
        self.state = _WAITING
        self.stream = self
        self.conn = conn = broker.conns.take(self, broker.now)
        if conn == _NONE:
            return
        broker.conns.quota[conn] = [_NONE, 1, 0, None]
        broker.loop.of_stream[self] = conn
        self.is_held = True

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

    def _is_idle(self):
        # Has no message passed for idle_timeout?
        sessions = self.broker.sessions
        last = self.broker.conns.last_activity[self.conn]
        if last != self.pong:
            self.busy = last
        last = max(self.busy, sessions.progress[self.session])
        waits = sessions.queued[self.session] + sessions.inflight[self.session]
        return not waits and self.broker.now - last >= self.options.idle_timeout * 10

    def _dial(self):
        broker = self.broker
        conns = broker.conns
        loop = broker.loop
        try:
            made = self.reach(self.address, loop.lwip or broker.settings.set_tcp_nodelay)
            if not made:
                return
        except (OSError, ValueError) as error:
            why = self._words().reason_of(error, self.options.bridge_bind_address)
            self._log(_WARNING, "cannot connect to %s (%s)" % (self.where(), why))
            self._retry()
            return
        socket, peer = made
        self.host = self.options.addresses[self.address][0]
        self.is_dialled = False
        stream = self.owner.stream_of(self, socket)
        conn = self.conn
        del loop.of_stream[self]
        self.stream = conns.stream[conn] = conns.attached[conn] = stream
        loop.of_stream[stream] = conn
        conns.source[conn] = peer
        conns.opened[conn] = broker.now
        packet = self.connect_packet()
        base = conn * conns.tx_bytes
        copy(conns.tx, base, packet, 0, len(packet))
        conns.tx_end[conn] = base + len(packet)
        conns.out[conn] = _BLOCKED
        self.state = _CONNECTING
        loop.poller.register(stream, _POLL)
        self.is_dialled = True

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

    def probed(self):
        """The socket of the probe has an event."""
        if self._probing().go_on_probing(self) and self.is_up():
            self._log(_NOTICE, "the first address is back")
            self.is_soon = True
            self.stop()
            self.broker.end(self.conn, _LEFT)

    def _probing(self):
        return ondemand.take("bridge.probe", self.broker.now)

    def _drop_probe(self):
        if self.probe:
            self._probing().drop_probe(self)

    def _lost(self):
        # The connection has ended, and its slot is another's.
        self.is_held = False
        self.owner.slow.pop(self.conn, None)
        self._drop_probe()
        if self.conn != _NONE:
            self.broker.five.packet_max[self.conn] = 0  # it would hold for the next client
        if self.is_clean:
            self.session = _NONE
        self.is_over = self.options.start_type == "once" and not self.is_soon
        if self.state == _UP:
            self.losses += not self.is_soon
            self._tell(b"0")
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
            self._speak(True)  # the other broker may be a newer one now
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
            self._log(_NOTICE, "no further attempt: start_type once")
        elif options.start_type == "automatic":
            self._log(_NOTICE, "the next attempt in %d s, %s" % (pause // 10, self.where()))

    def _keep(self):
        # What an open connection needs: SUBSCRIBE for what comes in, and PINGREQ.
        broker = self.broker
        if self.owed and self._put(self.owed):
            self.owed = b""
        while self.asked < len(self.requests):
            first, name, tail = self.requests[self.asked]
            asks = self.is_5 and first == 0x82
            why = self._five().may_ask(self.remote, name) if asks else None
            head = (_FIRST_ID + self.asked).to_bytes(2, "big")
            if self.is_5:
                head += b"\0"  # no properties
            packet = packet_of(first, head + field(name) + tail)
            if self._is_too_large(packet):
                why = "packets of %d bytes" % len(packet)
            if why:
                self._log(_WARNING, "the other broker has no %s: %r" % (why, name.decode()))
                self.asked += 1
                self.answered += 1
                continue
            if not self._put(packet):
                return
            self.asked += 1
            self.limit = broker.now + _ANSWER
        if self.answered < self.asked and broker.now >= self.limit:
            self.why = "no SUBACK or UNSUBACK in %d s" % (_ANSWER // 10)
            broker.end(self.conn, _TIMED_OUT)
        elif broker.now >= self.due and self.keep_alive() and self._put(b"\xc0\0"):
            self.due = broker.now + self.keep_alive() * 10

    def _put(self, packet):
        # Send a packet; False: not now.
        at = space(self.broker, self.conn, len(packet))
        if at < 0:
            return False
        copy(self.broker.conns.tx, at, packet, 0, len(packet))
        self.broker.flush(self.conn)
        return True

    def _is_too_large(self, packet):
        return len(packet) > self.remote.get(_PACKET_LIMIT, len(packet))

    def acknowledge(self, first, packet_id):
        """Answer a message that was skipped, at the latest when there is space."""
        conns = self.broker.conns
        if not self.owed and conns.tx_end[self.conn] + 4 <= (self.conn + 1) * conns.tx_bytes:
            put_ack(self.broker, self.conn, first, packet_id)
            return
        self.wake = 0
        self.owed += packet_of(first, packet_id.to_bytes(2, "big"))
        self.broker.turn_soon = 1

    def _five(self):
        # What only MQTT 5.0 needs.
        return ondemand.take("bridge.version5", self.broker.now)

    def _speak(self, is_5):
        # What the next CONNECT says: 5.0, or an older version and that this is a bridge.
        module = ondemand.take("bridge.options", self.broker.now)
        self.is_5 = is_5
        self.is_private = self.options.try_private and not is_5
        self.requests = module.requests(self.options, self._five() if is_5 else None)

    def _speak_older(self):
        # The version was refused: at once again with 3.1.1, then as an ordinary client; False:
        # that was it. The attempt after a pause or a loss begins anew.
        if self.is_5:
            self._log(_WARNING, "the other broker has no MQTT 5.0: 3.1.1")
            self._speak(False)
        elif self.is_private:
            self.is_private = False
        else:
            return False
        self.is_soon = True
        return True

    def connect_packet(self):
        """The CONNECT with which it asks to be let in."""
        options = self.options
        flags = _CLEAN if options.cleansession else 0
        body = field(self.remote_id)
        if options.notifications and not options.notifications_local_only:
            flags |= self.will_flags
            body += b"\0" if self.is_5 else b""
            body += field(self.state_topic.encode()) + field(b"0")
        if options.remote_username is not None:
            flags |= _USER_NAME
            body += field(options.remote_username.encode())
            if options.remote_password is not None:
                flags |= _PASSWORD
                body += field(options.remote_password.encode())
        is_old = options.bridge_protocol_version == "mqttv31"
        level = (3 if is_old else 5 if self.is_5 else 4) | (_PRIVATE if self.is_private else 0)
        head = field(b"MQIsdp" if is_old else b"MQTT") + bytes((level, flags))
        head += options.keepalive_interval.to_bytes(2, "big")
        if self.is_5:
            head += self._five().properties(options, self.broker.limits, self.broker.pkt)
        return packet_of(0x10, head + body)

    def keep_alive(self):
        """Seconds between two PINGREQ; 0: none. The other broker may have said them."""
        return self.remote.get(_SERVER_KEEP_ALIVE, self.options.keepalive_interval)

    # What comes from the other broker

    def connected(self, pkt, buf):
        """CONNACK; a result."""
        at = pkt[_BODY]
        size = pkt[_TOTAL]
        self.why = "malformed CONNACK"
        if size < 4 or size > 4 and not self.is_5 or not self.broker.conns.is_empty(self.conn):
            return _MALFORMED
        code = buf[at + 1]
        self.remote = {}
        if self.is_5:
            self.closed = 0
        if size > 4:
            try:
                self.remote, at_end = self._five().read(buf, at + 2, pkt[_END])
            except ValueError:
                return _MALFORMED
            if at_end != pkt[_END]:
                return _MALFORMED
        elif self.is_5 and not code:
            return _MALFORMED
        self.why = None
        if code in (_NO_RETAIN, _NO_QOS) and self.will_flags != _WILL:
            # It is the will that it does not take: at once again, with a simple one.
            self.will_flags = _WILL
            self.is_soon = True
            return _REFUSED
        if code in (_BAD_LEVEL, _BAD_VERSION) and self._speak_older():
            return _REFUSED
        if code:
            text = self._five().reason(code, self.remote) if size > 4 else None
            self._words().say_refused(self, code, text)
            return _REFUSED
        options = self.options
        present = buf[at] & 1
        if options.bridge_protocol_version == "mqttv31" and not options.cleansession:
            present = 1  # 3.1 does not say it: what it may have kept counts as kept
        if not present:
            self._forget_received()
        if not self._enter():
            self._log(_WARNING, "no space here: sessions, users or subscriptions")
            return _REFUSED
        if present and not self.is_new:
            ondemand.take("bridge.start", self.broker.now).drop_scans(self)
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
        return _ACCEPTED

    def answer(self, pkt, buf):
        """SUBACK, UNSUBACK or PINGRESP; a result."""
        at = pkt[_BODY]
        first = buf[pkt[_START]]
        if first == 0xD0:
            self.pong = self.broker.now
            return _OK
        end = pkt[_END]
        if self.is_5:
            try:
                if self._five().read(buf, at + 2, end)[1] != end - 1:
                    return _MALFORMED
            except ValueError:
                return _MALFORMED
        elif end - at != (3 if first == 0x90 else 2):
            return _MALFORMED
        index = (buf[at] << 8 | buf[at + 1]) - _FIRST_ID
        if not 0 <= index < self.asked:
            return _PROTOCOL
        self.answered += 1
        self.wake = 0
        if first == 0x90 and buf[end - 1] >= _FAILURE:
            text = self.requests[index][1].decode()
            why = " (%s)" % self._five().reason(buf[end - 1]) if self.is_5 else ""
            self._log(_WARNING, "the other broker does not grant %r%s" % (text, why))
        return _OK

    # The session

    def _enter(self):
        # Give the slot its session, as CONNECT does; False: a table is full.
        broker = self.broker
        conns = broker.conns
        conn = self.conn
        self.is_held = False
        conns.stream[conn] = self  # for this moment: a client of the program itself
        user = self.options.local_username
        result = ondemand.take("protocol.connect", broker.now).connect(
            broker,
            conn,
            self.local_id,
            user.encode() if user else None,
            _CLEAN if self.is_clean else 0,
            self.keep_alive(),
        )
        conns.tx_end[conn] = conn * conns.tx_bytes  # without the answer
        if result == _ACCEPTED:
            self._entered(conns.session[conn])
        else:
            self.is_held = True
        conns.stream[conn] = self.stream
        return result == _ACCEPTED

    def _entered(self, session):
        broker = self.broker
        self.session = session
        self._take_limits(session)
        if not self.is_clean:  # whatever persistent_client_expiration says
            broker.five.set_expiry(broker, session, 0x3FFFFFFF)
        ondemand.take("bridge.start", broker.now).subscribe(self, session)

    def _take_limits(self, session):
        # What this connection allows, and so how its messages may be handled.
        five = self.broker.five
        conn = self.conn
        most = self.options.bridge_max_packet_size
        five.packet_max[conn] = most and max(most - self.growth, 1)
        kind = 0
        if most:
            kind = _OTHER
            self.broker.conns.level[conn] = _LIMITED
        if self.is_5 and self.stream is not self:
            kind = _OTHER if self._five().entered(self) else _PLAIN
        five.take(self.broker, session, _BRIDGE | kind)
        if self.echoes:
            self.owner.slow[conn] = None
        if _MAXIMUM_QOS in self.remote:
            self._five().lower_qos(self, self.remote[_MAXIMUM_QOS])

    def _forget_received(self):
        # The other broker has no session, so it sends no PUBREL, and uses the ids anew.
        broker = self.broker
        sessions = broker.sessions
        session = self.session
        while session != _NONE and sessions.id_count[session]:
            at = session * sessions.received + sessions.id_count[session] - 1
            if sessions.id_msg is not None and sessions.id_msg[at] != _NONE:
                lifecycle.publish_stored(broker, sessions.id_msg[at], session)
            msg = sessions.remove_received(session, at)
            if msg != _NONE:
                unref(broker.tables, msg)

    # What is said about it

    def _tell(self, text):
        if self.options.notifications:
            publishing = ondemand.take("embed.publishing", self.broker.now)
            publishing.send(self.broker, self.state_topic.encode(), text, 1, True)

    def mask(self):
        """For the first byte of PUBLISH: does the other broker take RETAIN?"""
        return 0xFF if self.remote.get(_RETAIN_AVAILABLE, 1) else 0xFE

    def refuse(self, why, text):
        """A message was refused; counted, and logged once for each connection and reason."""
        self.refusals[why] = self.refusals.get(why, 0) + 1
        if why not in self.said:
            self.said.append(why)
            self._log(_WARNING, "dropped: " + text)

    def where(self):
        """The address that it is connected to, or will be."""
        host, port = self.options.addresses[self.address]
        return ("[%s]:%d" if ":" in host else "%s:%d") % (host, port)

    def ended(self, reason, number):
        """Its connection ends: say why. number: the error of the socket, or 0."""
        try:
            if self.state != _WAITING and self.broker.log_mask & (_WARNING | _NOTICE):
                self._words().say_ended(self, reason, number)
        except MemoryError:
            pass
        self.why = None
        # Old brokers close at once where CONNECT has a version that they do not know; one end may
        # be that of the network. A proxy without a broker often closes later.
        conns = self.broker.conns
        has_asked = self.state == _CONNECTING and conns.out[self.conn] != _BLOCKED
        at_once = self.broker.now - conns.opened[self.conn] < _EARLY
        if has_asked and at_once and reason == _LOST and self.wants_5:
            self.closed += 1
            if self.closed > 1:
                self._speak_older()

    def _words(self):
        return ondemand.take("status.log_bridges", self.broker.now)

    def _log(self, bit, text):
        if self.broker._log_mask & bit:
            self.broker.log(bit, "Bridge %r: %s." % (self.options.name, text))

    def text(self):
        """Its state as a word."""
        return _STATES[_WAITING if self.state == _UP and not self.is_up() else self.state]

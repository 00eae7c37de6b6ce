"""Faults that two brokers with a bridge must show, in the sender's table and in the bridge."""

from .faults import Fault

_BRIDGE = "bridge"  # as in run.py

FAULTS = (
    # The sender's table
    Fault(
        "bridge: DUP is forgotten",
        "delivery/routing.py",
        "        deliveries.flags[entry] |= _DUP",
        "        pass",
        where=_BRIDGE,
    ),
    Fault(
        "bridge: DUP is forgotten on the fast path",
        "fast/deliveries_cpython.py",
        "            d.flags[entry] = flags | 8",
        "            d.flags[entry] = flags",
        where=_BRIDGE,
    ),
    Fault(
        "bridge: a packet id is used again before PUBCOMP",
        "fast/deliveries_cpython.py",
        "    if state == _SENT_2:\n        d.state[entry] = _RELEASED",
        "    if state == _SENT_2 and entry % 3:\n        d.state[entry] = _RELEASED",
        where=_BRIDGE,
    ),
    Fault(
        "bridge: PUBREL is lost after a cut",
        "delivery/lifecycle.py",
        "    sessions.cursor[session] = sessions.head[session]\n    broker.conns",
        "    entry = sessions.head[session]\n"
        "    while entry != _NONE and broker.deliveries.state[entry] == 3:\n"
        "        entry = broker.deliveries.next[entry]\n"
        "    sessions.cursor[session] = entry\n    broker.conns",
        where=_BRIDGE,
    ),
    Fault(
        "bridge: PUBREL is lost after a power cut",
        "journal/restore_messages.py",
        "        if slot >= deliveries.slots:\n",
        "        if u16(buf, 4) == _NONE:\n            return\n"
        "        if slot >= deliveries.slots:\n",
        where=_BRIDGE,
    ),
    Fault(
        "bridge: PUBLISH comes again after PUBREL",
        "fast/deliveries_cpython.py",
        "        d.flags[entry] = _CHANGED | 4\n        d.count[_UNSAVED] = 1\n",
        "        d.flags[entry] = 4\n",
        where=_BRIDGE,
    ),
    Fault(
        "bridge: packet ids change at a start",
        "journal/restore_messages.py",
        "        if not self.counts(there, at):",
        "        slot = broker.deliveries.count[0]\n        if not self.counts(there, at):",
        where=_BRIDGE,
    ),
    Fault(
        "bridge: DUP is forgotten after a power cut",
        "journal/restore_messages.py",
        "            deliveries.flags[slot] |= _DUP",
        "            pass",
        where=_BRIDGE,
    ),
    Fault(
        "bridge: acknowledged before it is kept",
        "journal/writer.py",
        "        if changed and self.always or not self.whole:",
        "        if not self.whole:",
        where=_BRIDGE,
    ),
    Fault(
        "bridge: nothing comes again after a cut",
        "delivery/lifecycle.py",
        "    sessions.cursor[session] = sessions.head[session]\n    broker.conns",
        "    sessions.cursor[session] = _NONE\n    broker.conns",
        where=_BRIDGE,
    ),
    # The bridge
    Fault(
        "bridge: what has been received is forgotten",
        "bridge/link.py",
        "        if not present:\n            session.forget_received(self)",
        "        if present:\n            session.forget_received(self)",
        where=_BRIDGE,
    ),
    Fault(
        "bridge: what waits is forgotten with the other broker's session",
        "bridge/link.py",
        "            session.forget_received(self)\n        if",
        "            session.forget_received(self)\n"
        "            if self.session != _NONE:\n"
        "                lifecycle.discard_state(self.broker, self.session)\n        if",
        where=_BRIDGE,
    ),
    Fault(
        "bridge: it connects with a clean session",
        "bridge/handshake.py",
        "    flags = _CLEAN if options.cleansession else 0",
        "    flags = _CLEAN",
        where=_BRIDGE,
    ),
    Fault(
        "bridge: its session here is clean",
        "bridge/session.py",
        "        _CLEAN if one.is_clean else 0,",
        "        _CLEAN,",
        where=_BRIDGE,
    ),
    Fault(
        "bridge: more is under way than mosquitto takes",
        "protocol/open_session.py",
        "_UNDER_WAY = const(20)",
        "_UNDER_WAY = const(50)",
        where=_BRIDGE,
    ),
    Fault(
        "bridge: a byte is written twice where the socket is full",
        "bridge/mapping.py",
        "                self.skip = 1",
        "                self.skip = 0",
        where=_BRIDGE,
    ),
)

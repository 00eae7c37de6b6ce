"""Faults to plant in the broker.

Each is a name, a file of lib/slotmq, a text in that file, and what replaces the text.
"""

from typing import NamedTuple


class Fault(NamedTuple):
    name: str
    file: str
    text: str
    planted: str
    first: int = 0  # the first seed that looks for it
    where: str = ""  # BRIDGE of run.py: it is looked for between two brokers


class Planted(NamedTuple):
    """One that no simulator looks for."""

    fault: Fault
    test: str  # finds it


_NOTHING = "pass"

FAULTS = (
    # Acknowledgements and packet ids
    Fault(
        "acknowledged though there was no free slot",
        "protocol/publish.py",
        "(retains or broker.when_no_message):\n            return broker.when_no_message",
        "(retains or broker.when_no_message):\n            return _OK",
    ),
    Fault(
        "a received id is forgotten",
        "fast/path_cpython.py",
        "        sessions.add_received(session, packet_id)",
        f"        {_NOTHING}",
    ),
    Fault(
        "a received id is never forgotten",
        "fast/path_cpython.py",
        "        sessions.remove_received(session, at)",
        f"        {_NOTHING}",
    ),
    Fault(
        "a received id stays after a hook has raised",
        "v5/publish.py",
        "            sessions.remove_received(session, at)\n            raise",
        "            raise",
    ),
    Fault(
        "a duplicate is delivered",
        "protocol/publish.py",
        "    if sessions.find_received(session, packet_id) < 0:",
        "    if True:",
    ),
    Fault(
        "no PUBREL for an unknown PUBREC",
        "protocol/acks.py",
        "        put_ack(broker, conn, _PUBREL, pkt[_PACKET_ID])",
        "        pass",
    ),
    Fault(
        "DUP is missing",
        "fast/deliveries_cpython.py",
        "            d.flags[entry] = flags | 8",
        "            d.flags[entry] = flags",
    ),
    Fault(
        "a free id is used again at once",
        "fast/deliveries_cpython.py",
        "    d.session[entry] = _NONE",
        "    d.session[entry] = session",
    ),
    # Queues and counts
    Fault(
        "a reference leaks",
        "fast/path_cpython.py",
        "        unref(tables, msg)\n    if qos == 2:",
        "    if qos == 2:",
    ),
    Fault(
        "an acknowledgement does not free its place in the window",
        "fast/deliveries_cpython.py",
        "        s.inflight[session] -= 1",
        f"        {_NOTHING}",
    ),
    Fault(
        "the window is too large by one",
        "fast/deliveries_cpython.py",
        "        if s.inflight[session] >= most:",
        "        if s.inflight[session] > most:",
    ),
    Fault(
        "the Receive Maximum is ignored",
        "v5/routing.py",
        "    if flags & 6 and _under_way(",
        "    if False and _under_way(",
    ),
    Fault(
        "the order is swapped",
        "fast/deliveries_cpython.py",
        "    if s.cursor[session] == _NONE:\n        s.cursor[session] = entry\n    s.queued",
        "    if s.cursor[session] == _NONE or s.queued[session]:\n"
        "        s.cursor[session] = entry\n    s.queued",
    ),
    Fault(
        "nothing is sent again after a reconnect",
        "delivery/lifecycle.py",
        "    sessions.cursor[session] = sessions.head[session]\n    broker.conns",
        "    sessions.cursor[session] = _NONE\n    broker.conns",
    ),
    Fault(
        "a drop is not counted",
        "delivery/routing.py",
        "    broker.deliveries.refused += 1\n    broker.stats[_DROPPED] += 1\n"
        "    if broker.bridges:\n        broker.bridges.refused(session)\n    return _NONE",
        "    return _NONE",
    ),
    Fault(
        "the QoS is not lowered to the granted one",
        "fast/deliveries_cpython.py",
        "        granted = min(pool[i] & 3, qos)",
        "        granted = qos",
    ),
    # Sessions and wills
    Fault(
        "a clean session keeps its old state",
        "protocol/open_session.py",
        "        lifecycle.discard_state(broker, session)",
        f"        {_NOTHING}",
    ),
    Fault(
        "a refused CONNECT takes over the session",
        "protocol/open_session.py",
        "    flags = fields.flags >> 2",
        "    if fields.old != _NONE:\n        broker.end(fields.old, _TAKEN_OVER)\n"
        "        lifecycle.detach(broker, fields.old)\n    flags = fields.flags >> 2",
        first=900,
    ),
    Fault(
        "Session Present is missing",
        "protocol/open_session.py",
        "        fields.present = 1",
        "        fields.present = 0",
    ),
    Fault(
        "the will is sent in spite of DISCONNECT",
        "delivery/lifecycle.py",
        "        drop_will(broker, session)\n    elif",
        "        publish_will(broker, session)\n    elif",
    ),
    Fault(
        "the will of an older connection stays",
        "v5/extension.py",
        "        lifecycle.drop_will(broker, session)\n",
        "",
    ),
    Fault(
        "the will delay is ignored",
        "v5/extension.py",
        "        self.will_at[session] = broker.now + delay * 10\n        return True",
        "        return False",
    ),
    Fault(
        "a session never expires",
        "v5/extension.py",
        "                if gone >= self.expiry[session] < NEVER:",
        "                if gone < 0:",
    ),
    Fault(
        "the session that disconnected last is evicted first",
        "protocol/open_session.py",
        "sessions.left[session] < sessions.left[oldest]",
        "sessions.left[session] > sessions.left[oldest]",
    ),
    # Retained messages
    Fault(
        "a retained message is not cleared",
        "delivery/retain.py",
        "        if slot != _NONE:\n            unref(broker.tables, retained.remove(slot))\n",
        "",
    ),
    Fault(
        "a retained message is stored though it found no slot",
        "delivery/retain.py",
        "        unref(broker.tables, retained.put(slot, msg))",
        "        unref(broker.tables, retained.put(slot, msg))\n        return",
    ),
    Fault(
        "a scan leaves some out", "delivery/retain.py", "        slot += 1", "        slot += 2"
    ),
    Fault(
        "a scan of many at once leaves some out",
        "delivery/storms_cpython.py",
        "        slot += 1",
        "        slot += 2",
    ),
    # Version 5
    Fault(
        "an expired message is sent",
        "v5/send.py",
        "        if not first & _DUP:\n            return -1\n        source.left = 1",
        "        source.left = 1",
        first=1130,
    ),
    Fault(
        "No Local is ignored",
        "v5/routing.py",
        "    if not five.options[sub] & _NOT_OWN:",
        "    if True:",
    ),
    Fault(
        "two members of a group get a message",
        "v5/routing.py",
        "    shares.picked[slot] = 1",
        "    shares.picked[slot] = 0",
    ),
    Fault(
        "aliases stay when their connection ends",
        "v5/extension.py",
        "        self.aliases.forget(conn)\n",
        "",
    ),
    Fault(
        "RETAIN is lost where the QoS is raised",
        "protocol/publish.py",
        "        _publish(broker, pkt, buf, retained, slot)\n        return",
        "        _publish(broker, pkt, buf, 0, slot)\n        return",
    ),
    # Bytes, streams, time
    Fault(
        "a byte is lost if a socket takes only part of a write",
        "net/loop.py",
        "        copy(conns.tx, base, conns.tx, base + done, n - done)",
        "        copy(conns.tx, base, conns.tx, base + done, n - done - 1)",
    ),
    Fault(
        "ENOBUFS ends a connection",
        "net/loop.py",
        "        if self.errno not in (_EAGAIN, _ENOBUFS):",
        "        if self.errno != _EAGAIN:",
    ),
    Fault(
        "time jumps when the clock wraps",
        "fast/pump_cpython.py",
        "ticks_ms() - counts[_LAST_MS] & _MS_BITS",
        "abs(ticks_ms() - counts[_LAST_MS])",
    ),
    Fault(
        "the keep-alive timeout is shorter than 1.5 times the interval",
        "protocol/open_session.py",
        "fields.keep_alive * 15",
        "fields.keep_alive * 5",
    ),
    Fault(
        "a cached route is used though subscriptions have changed",
        "tables/subscriptions.py",
        "        self.forget_routes()\n        session = self.session[sub]\n",
        "        session = self.session[sub]\n",
    ),
    Fault(
        "a reassembly buffer is not freed",
        "tables/connections.py",
        "            self.reassembly_owner[k] = _NONE\n            self.reassembly[0] -= 1",
        "            self.reassembly_owner[k] = _NONE",
    ),
    # Full tables and quotas
    Fault(
        "a session with messages is evicted",
        "protocol/open_session.py",
        "if empty and (sessions.head[session] != _NONE or sessions.id_count[session]):",
        "if empty and sessions.id_count[session]:",
    ),
    Fault(
        "a session with QoS 2 ids is evicted",
        "protocol/open_session.py",
        "if empty and (sessions.head[session] != _NONE or sessions.id_count[session]):",
        "if empty and sessions.head[session] != _NONE:",
    ),
    Fault(
        "sessions that outlive their connections take every slot",
        "protocol/open_session.py",
        "    return staying < sessions.slots - min(",
        "    return True or min(",
    ),
    Fault(
        "a lasting session is refused though an empty one could be evicted",
        "protocol/open_session.py",
        '    if policy != "refuse":',
        '    if policy == "drop_oldest":',
    ),
    Fault(
        "a session exceeds its quota of message slots",
        "delivery/quota.py",
        "    if slots >= most * share // share_of:",
        "    if False:",
    ),
    Fault(
        "a session exceeds its quota of message bytes",
        "delivery/quota.py",
        "_OF_BYTES + crowded if blocks + size > most_blocks * share // share_of else 0",
        "0",
    ),
    Fault(
        "absent clients' sessions take all messages",
        "delivery/quota.py",
        "    if crowded and sessions.conn[session] == _NONE:",
        "    if False:",
    ),
    Fault(
        "a session exceeds its quota of deliveries",
        "delivery/quota.py",
        "    if taken and taken >= deliveries.slots * share // share_of:",
        "    if False:",
    ),
    Fault(
        "absent clients' sessions take all deliveries",
        "delivery/quota.py",
        "    if n and not freed and",
        "    if False and",
    ),
    Fault(
        "the fast path ignores the quota of deliveries",
        "fast/deliveries_cpython.py",
        "    if d.count[_IN_USE] + end - i > d.count[_QUOTA_DELIVERIES] or m",
        "    if d.count[_IN_USE] + end - i > d.slots or m",
    ),
    Fault(
        "a connected client takes the last quarter of the messages and disconnects",
        "delivery/quota.py",
        "        share = min(share, left)",
        "        pass",
    ),
    Fault(
        "the fast path ignores the quotas",
        "fast/deliveries_cpython.py",
        "d.count[_QUOTA_DELIVERIES] or m.count[_IN_USE] >= slots:",
        "d.count[_QUOTA_DELIVERIES]:",
    ),
    Fault(
        "messages that wait for PUBREL are in no quota",
        "delivery/quota.py",
        "            slots += sessions.id_msg[i] != _NONE\n"
        "            blocks += broker.messages.blocks(sessions.id_msg[i])",
        "            pass",
    ),
    Fault(
        "an incomplete packet times out while the broker does not read",
        "net/timers.py",
        "if broker.loop.paused[conn] & _IN:",
        "if False:",
    ),
)

"""Faults on the fast path of MQTT 5.0, and in what decides that a packet may go there."""

from .faults import Fault

FAULTS = (
    Fault(
        "fast path: version 3 gets the length of the properties",
        "fast/path_cpython.py",
        "    body += packet[topic + size + 1 :] if five",
        "    body += packet[topic + size :] if five",
    ),
    Fault(
        "fast path: version 5 gets no length of the properties",
        "fast/path_cpython.py",
        'else b"\\0" + packet[topic + size :]',
        "else packet[topic + size :]",
    ),
    Fault(
        "fast path: properties count as payload",
        "fast/path_cpython.py",
        "    if five and (at + size == stop or buf[at + size]):",
        "    if five and at + size == stop:",
    ),
    Fault(
        "fast path: a stored message begins with the length of its properties",
        "fast/path_cpython.py",
        "        pkt[_PAYLOAD] = at + 1\n",
        "",
    ),
    Fault(
        "fast path: a stored message has lost its properties",
        "fast/path_cpython.py",
        "        if at == pkt[_END] or buf[at] or first == last:",
        "        if at == pkt[_END] or first == last:",
    ),
    Fault(
        "fast path: a packet for both versions is sent without space",
        "fast/path_cpython.py",
        "        n = len(of_3 if i < mid else of_5)\n        if conn != _NONE and",
        "        n = len(of_3)\n        if conn != _NONE and i >= mid and",
    ),
    Fault(
        "fast path: version 5 gets a delivery as version 3 does",
        "fast/deliveries_cpython.py",
        'b"\\0" if five else b""',
        'b""',
    ),
    Fault(
        "fast path: a delivery is sent without its identifier",
        "fast/deliveries_cpython.py",
        "if flags >> 6 or m.flags[d.msg[entry]] & _EXTRA:",
        "if m.flags[d.msg[entry]] & _EXTRA:",
    ),
    Fault(
        "fast path: more are in flight than Receive Maximum allows",
        "v5/routing.py",
        "    most = broker.five.receive_max[conn]\n",
        "    most = broker.deliveries.window[0]\n",
    ),
    Fault(
        "a route stays though its client has another version now",
        "v5/extension.py",
        "                subs.forget_routes()",
        "                pass",
    ),
    Fault(
        "a route is remembered though an option matters",
        "tables/subscriptions.py",
        "            keeps = keeps and not self.five.is_odd(self.pool[i])",
        "            pass",
    ),
    Fault(
        "a route of both versions has one order only",
        "tables/subscriptions.py",
        "                pool[i] = pool[mid]\n                pool[mid] = entry\n",
        "",
    ),
    Fault(
        "a packet is larger than its client accepts",
        "v5/connect.py",
        "    limited = 0 < five.packet_max[conn] < broker.pkt[_PACKET_MAX] + 2\n",
        "    limited = False\n",
    ),
    Fault(
        "fast properties: version 3 gets them",
        "fast/properties_cpython.py",
        "_packet(0x30, name + payload)",
        "_packet(0x30, name + section + payload)",
    ),
    Fault(
        "fast properties: the alias of a client is passed on",
        "fast/properties_cpython.py",
        "            rest = data[: at - 3] + data[at:]\n",
        "",
    ),
    Fault(
        "fast properties: an alias of the broker is another topic's",
        "fast/properties_cpython.py",
        "        if size == n and aliases.arena.text(aliases.outward[at]) == topic:",
        "        if size:",
    ),
    Fault(
        "fast properties: an alias of a client is another client's",
        "fast/properties_cpython.py",
        "    at = conn * aliases.most + alias - 1\n    if not",
        "    at = alias - 1\n    if not",
    ),
    Fault(
        "fast properties: what expires is sent for ever",
        "fast/properties_cpython.py",
        "            if five.expires[msg]:\n",
        "            if False:\n",
    ),
    Fault(
        "fast properties: a stored message has none",
        "fast/properties_cpython.py",
        "        five.props[msg] = len(section)\n",
        "        five.props[msg] = 0\n",
    ),
    Fault(
        "fast properties: a packet is larger than its client accepts",
        "fast/properties_cpython.py",
        "    if 0 < five.packet_max[conn] < size:\n        return -2\n",
        "",
    ),
    Fault(
        "fast properties: who may not publish does",
        "fast/properties_cpython.py",
        "routes.senders.of(conn) if routes.senders else routes.slot_of",
        "routes.slot_of",
    ),
    Fault(
        "fast properties: a delivery is sent without its identifier",
        "fast/properties_cpython.py",
        "self.broker.five.ident[entry] if flags & _BY else 0",
        "0",
    ),
    Fault(
        "fast properties: a packet is sent without space",
        "fast/properties_cpython.py",
        " or size >> 14 or conns.tx_end[conn] + size > conns.tx_limit[conn]:",
        " or size >> 14:",
    ),
    Fault(
        "fast properties: a duplicate is delivered",
        "fast/properties_cpython.py",
        "            sessions.add_received(session, packet_id)",
        "            pass",
    ),
    Fault(
        "fast properties: a message has the expiry that it came with",
        "fast/properties_cpython.py",
        "(five.expires[msg] - self.broker.now + 9) // 10",
        "five.expires[msg] // 10",
    ),
)

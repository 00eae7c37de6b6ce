# auth.py - AUTH [5.0, 3.15, 4.12]: enhanced authentication, before CONNACK and again later.
#
# A hook decides: Broker.hooks, if that has auth, or else the Scram of v5/scram.py, if there is a
# password_file. It has auth(conn, method, data) -> (reason code, data or None), where 0x18 means
# "continue", and forget(conn). For the log it may have `user`, the name that the last auth()
# accepted, and `last`, the name that it was asked about. access/login.py knows who must wait,
# and the hook may_connect is asked after it. Broker.five.exchanges has, for each connection with a
# method, [method, its CONNECT while that waits, data for CONNACK, is an exchange under way?].
# Loaded on demand; owns nothing. Control plane: may allocate and free.
from slotmq.constants import (AUTH, BODY, BUSY, DATA, END, MALFORMED_PACKET, METHOD, MORE, NEW, OK,
    PACKET_TOO_LARGE, PROTOCOL_ERROR, START, UNAUTHORIZED)
from slotmq.delivery.encode import length_bytes, put_header, put_length
from slotmq.fast import new_packet, next_packet
from slotmq.platform import ondemand
from slotmq.protocol import open_session
from slotmq.protocol.connect import Fields
from slotmq.v5.connack import text
from slotmq.v5.outgoing_acks import sent, space_for
from slotmq.v5.properties import scan

ondemand.loaded.setdefault("protocol.connect", 0)  # imported here: unload it as well

_SENT = -2  # of a step of CONNECT: it goes on when AUTH comes
_IN_AUTH = 128
# Reason codes [2.4]
_CONTINUE = 0x18
_AGAIN = 0x19
_BAD_METHOD = 0x8C


def auth(broker, conn, fields):
    """A CONNECT with a method, a step of CONNECT: 0: authenticated."""
    exchanges = broker.five.exchanges
    hook = broker.five.hook(broker)
    if hook is broker.five.scram and not broker.conns.option(conn, "password_file", 1):
        hook = None  # the listener has no users
    code, data = _BAD_METHOD, None
    if conn in exchanges:
        code, data = OK, exchanges[conn][2]  # the exchange is over
    elif hook:
        code, data = _ask(broker, conn, fields.method, fields.auth_data)
    if code == OK:
        exchanges[conn] = [fields.method, None, None, False]
        fields.auth_data = data
        fields.user = getattr(hook, "user", None)
        if hook is broker.five.scram and broker.may_connect:
            return ondemand.take("embed.asking", broker.now).may_connect(broker, conn, fields)
        return 0
    if code == _CONTINUE:
        packet = bytes(fields.buf[fields.pkt[START] : fields.pkt[END]])
        exchanges[conn] = [fields.method, packet, None, True]
        code = _send(broker, conn, _CONTINUE, fields.method, data) or _SENT
    _explain(broker, code, fields)
    return code


def _explain(broker, code, fields):
    # For the log: why the Scram, which was asked just now, has refused.
    hook = broker.five.hook(broker)
    if hook is broker.five.scram and code in (UNAUTHORIZED, BUSY):
        fields.why = hook.why


def _ask(broker, conn, method, data):
    # Ask the hook; the Scram under the rules of access/login.py.
    hook = broker.five.hook(broker)
    if hook is not broker.five.scram:
        asking = ondemand.take("embed.asking", broker.now)
        return asking.answer(broker, hook.auth, conn, method, data)
    users = broker.users
    login = users.login(broker)
    if conn in hook.exchanges:
        # The last message, with the proof: it is not looked at if the client must wait.
        name = hook.exchanges[conn][0]
        why = login.must_wait(broker, conn, name)
        if why:
            hook.forget(conn)
            hook.last = name
            hook.why = why
            return BUSY, None
    code, data = hook.auth(conn, method, data)
    if code == UNAUTHORIZED:
        hook.why = b"wrong password or unknown user"  # SCRAM fails alike for both
        users.refused += 1
        login.punish(broker, conn, hook.last)
    elif code == OK:
        slot = users.find(hook.user)
        if broker.conns.state[conn] != NEW and users.of_conn[conn] != slot:
            return UNAUTHORIZED, None  # a client stays the user that it was let in as
        users.of_conn[conn] = slot
        users.accepted += 1
    return code, data


def _handle_auth(broker, conn, pkt, buf):
    # -> a result, or the CONNECT that waited and may go on now.
    known = broker.five.exchanges.get(conn)
    at = pkt[BODY]
    end = pkt[END]
    if known is None or at == end:
        return PROTOCOL_ERROR
    code = buf[at]
    values = broker.five.values
    values[0] = 0
    if at + 1 < end:
        at = scan(buf, at + 1, end, _IN_AUTH, values)
        if at != end:
            return -at if at < 0 else MALFORMED_PACKET
    if not values[0] >> METHOD & 1 or _text(buf, values, METHOD) != known[0]:
        return PROTOCOL_ERROR  # [4.12.0-5]
    is_new = broker.conns.state[conn] == NEW
    if code != _CONTINUE and (code != _AGAIN or is_new) or code == _CONTINUE and not known[3]:
        return PROTOCOL_ERROR
    data = _text(buf, values, DATA) if values[0] >> DATA & 1 else None
    code, data = _ask(broker, conn, known[0], data)
    known[3] = code == _CONTINUE
    if code == _CONTINUE or code == OK and not is_new:
        return _send(broker, conn, code, known[0], data)
    if not is_new or code != OK:
        return code
    connect = known[1]
    known[1], known[2] = None, data
    return connect


def _text(buf, values, column):
    return bytes(buf[values[column] : values[column] + values[column + MORE]])


def _send(broker, conn, code, method, data):
    body = text(0x15, method) + (text(0x16, data) if data else b"")
    remaining = 1 + length_bytes(len(body)) + len(body)
    at = space_for(broker, conn, 1 + length_bytes(remaining) + remaining)
    if at < 0:
        return PACKET_TOO_LARGE
    tx = broker.conns.tx
    at = put_header(tx, at, AUTH, remaining)
    tx[at] = code
    at = put_length(tx, at + 1, len(body))
    for byte in body:
        tx[at] = byte
        at += 1
    sent(broker, conn, at)
    return OK


def fill(broker, conn, fields, code):
    """Refuse a client within its exchange: fill in the CONNECT that began it, which says which
    client it is; -> the code."""
    fields.buf, fields.pkt = _packet(broker.five.exchanges[conn][1])
    fields.level = 5
    fields.flags = fields.buf[fields.pkt[BODY] + 7]
    fields.v5 = ondemand.take("v5.connect", broker.now)
    fields.v5.read(broker, conn, fields)
    fields.user = getattr(broker.five.hook(broker), "last", None)
    _explain(broker, code, fields)
    return code


def _packet(data):
    pkt = new_packet(len(data))
    next_packet(data, 0, len(data), pkt)
    return data, pkt


def handle(broker, conn, pkt, buf):
    """AUTH; if it ends the first exchange, the CONNECT that began it goes on."""
    result = _handle_auth(broker, conn, pkt, buf)
    if not isinstance(result, bytes):
        if result < 0x80 or conn not in broker.five.exchanges or broker.conns.state[conn] != NEW:
            return result
        fields = Fields(None)
        return open_session.refuse(broker, conn, fill(broker, conn, fields, result), fields)
    buf, pkt = _packet(result)
    return ondemand.take("protocol.connect", broker.now).handle(broker, conn, pkt, buf)

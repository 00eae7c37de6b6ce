# log_reasons.py - log lines about refused clients and filters, and why a connection without a
# session ended. Loaded on demand by status/log_connections.py; owns nothing; allocates the line.
from slotmq.constants import (AUTH, BODY, BUSY, END, FILTER_INVALID, MALFORMED, NOTICE, PACKET_MAX,
    PACKET_TOO_LARGE, PROTOCOL, PUBLISH_TYPE, QUOTA, START, TOPIC_LEN, TOPIC_SHOWN, TOTAL, TYPE)
from slotmq.platform import ondemand
from slotmq.status.log_connections import address

_CONNECT_BYTE = 0x10
_SHOWN = 24  # bytes that are shown of a text that is not MQTT
_BEGINNING = 4  # of other bytes
_UNAVAILABLE = 3
_LOGIN_CODES = b"\4\5\x86\x87"
_LOGIN_LINES = 10  # about logins in so many tenths of a second
_LOGIN_TIME = 100

# Reason codes from 0x80 on, in the standard's words [5.0, 2.4]
_REASONS = b"""\
unspecified error
malformed packet
protocol error
implementation specific error
unsupported protocol version
client identifier not valid
bad user name or password
not authorized
server unavailable
server busy
banned
server shutting down
bad authentication method
keep alive timeout
session taken over
topic filter invalid
topic name invalid
packet identifier in use
packet identifier not found
receive maximum exceeded
topic alias invalid
packet too large
message rate too high
quota exceeded
administrative action
payload format invalid
retain not supported
QoS not supported
use another server
server moved
shared subscriptions not supported
connection rate exceeded
maximum connect time
subscription identifiers not supported
wildcard subscriptions not supported"""
# Index in _REASONS of each return code of version 3, from 1 on
_RETURN_CODES = b"\4\5\x08\6\7"


def refused(broker, conn, reason):
    """CONNACK refuses a client. reason: (return code or reason code, fields of CONNECT), or a
    reason code of protocol/dispatch.py."""
    code, fields = reason if isinstance(reason, tuple) else (reason, None)
    who = "A client"
    level = broker.conns.level[conn]
    where, user = address(broker, conn)
    text = b""
    why = None
    if fields:
        level = fields.level
        if fields.client_id:  # else CONNECT was not read so far
            who = fields.read(fields.client_id).decode()
            who = "Client " + (repr(who) if who else "without an id")
        user = fields.read()
        text, why = fields.full, fields.why
    else:
        text = b"heap" if reason == QUOTA else b""
        if level != 5:
            code = _UNAVAILABLE  # as protocol/dispatch.py answers
    is_login = code in _LOGIN_CODES or code in (_UNAVAILABLE, BUSY) and why
    if broker.users and is_login and not _may_log_login(broker):
        return
    text = b", too little: " + text if text else b", " + why if why else b""
    text = text.decode() + (too_large(broker) if reason == PACKET_TOO_LARGE else "")
    what = (who, where, level, user and ", u%r" % user, name(code), text)
    broker.log(NOTICE, "%s [%s, p%d%s] refused: %s%s." % what)


def _may_log_login(broker):
    # Whoever guesses passwords must not fill the log: is there space for one more line about a
    # refused login? How many lines are missing is said later.
    logged = broker.users.logged
    if not 0 <= broker.now - logged[0] < _LOGIN_TIME:
        if logged[1] > _LOGIN_LINES:
            text = "Left out: %d lines about logins that were refused."
            broker.log(NOTICE, text % (logged[1] - _LOGIN_LINES))
        logged[:] = (broker.now, 0)
    logged[1] += 1
    return logged[1] <= _LOGIN_LINES


def _may_say(broker, who, what):
    return ondemand.take("platform.said", broker.now).may(broker, NOTICE, who, what)


def denied(broker, conn, what):
    """SUBACK refuses a filter; what: (filter, reason code of version 5)."""
    text, code = what
    who = broker.sessions.client_id(broker.conns.session[conn])
    if not _may_say(broker, who, text):
        return
    is_5 = broker.conns.level[conn] == 5
    why = _REASONS.split(b"\n")[code - 0x80]
    if code == FILTER_INVALID:
        why += b", too long or too deep: topic_bytes, levels"
    elif code == QUOTA:
        why = b"too little: subscriptions, nodes, name_bytes"
        why += b", shares" if is_5 and text.startswith(b"$share/") else b""
        why += b", the journal's space" if broker.journal_full else b""
    what = (who.decode(), text.decode(), why.decode(), code if is_5 else 0x80)
    broker.log(NOTICE, "Denied SUBSCRIBE from %r to %r: %s (0x%02x)." % what)


def ended(broker, conn, reason, text):
    """Why a connection without a session ends, with how it began if that is not MQTT: up to its
    first query of a text, else 4 bytes, since behind them may be a password or a payload.

    (CONNECT and AUTH are not shown: they contain passwords.)"""
    conns = broker.conns
    buf, at, end = conns.partial, conns.partial_off[conn], conns.buffered[conn]
    end += at
    if at == end and reason in (MALFORMED, PROTOCOL) and broker.conns.shown is not None:
        # Beside them in the buffer are bytes of other connections.
        buf, at, end = broker.conns.shown, broker.pkt[START], broker.pkt[END]
    said = bytes(buf[at : min(end, at + _SHOWN)])
    if [byte for byte in said[:_BEGINNING] if not 32 <= byte < 127]:
        said = said[:_BEGINNING]
    if said[:2] == b"\x16\x03":
        return "TLS, and this port speaks MQTT without it"
    why = getattr(conns.stream[conn], "why", None)  # of TLS
    if not why:
        why = getattr(conns.attached[conn], "why", None)  # of a Pipe
        if why and reason == PROTOCOL and not _may_say(broker, _host(broker, conn), why.encode()):
            return None
    if why:
        return "%s (%s)" % (text, why)
    if not said or said[0] & 0xF0 == _CONNECT_BYTE or said[0] >= AUTH:
        return text
    return "%s, no CONNECT but %r" % (text, said.split(b"\r")[0].split(b"?")[0])


def _host(broker, conn):
    return address(broker, conn)[0].rpartition(":")[0].encode()


def too_large(broker):
    """Which packet was larger than the broker takes, and which bound that is."""
    pkt = broker.pkt
    if broker.conns.shown is None:
        return ""
    topic = b""
    at = pkt[BODY] + 2
    if pkt[TYPE] == PUBLISH_TYPE and at <= pkt[END]:  # of the topic as much as has come
        n = broker.conns.shown[at - 2] << 8 | broker.conns.shown[at - 1]
        topic = bytes(broker.conns.shown[at : min(at + n, pkt[END], at + TOPIC_SHOWN)])
    to = " to %r" % topic if topic else ""
    key = "max_packet_size" if broker.settings.max_packet_size else "limit max_packet"
    return ", %d bytes%s, %s %d" % (pkt[TOTAL], to, key, pkt[PACKET_MAX])


def too_long(broker, pkt):
    """Was the topic of a PUBLISH too long? (Clears its length: the next packet may not set it.)"""
    if pkt[TYPE] != PUBLISH_TYPE or pkt[TOPIC_LEN] <= broker.limits.topic_bytes:
        return ""
    pkt[TOPIC_LEN] = 0
    return b", its topic is longer than topic_bytes".decode()


def words(code):
    """The words for a return code of version 3 or a reason code."""
    at = code - 0x80 if code & 0x80 else _RETURN_CODES[min(code, 5) - 1]
    rows = _REASONS.split(b"\n")
    return (rows[at] if at < len(rows) else b"an unknown reason").decode()


def name(code):
    """These words with the number."""
    return ("%s (reason 0x%02x)" if code & 0x80 else "%s (return code %d)") % (words(code), code)

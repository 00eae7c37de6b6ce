# reason.py - what the log says of who was refused, and why a connection without a session
# ended. Loaded on demand, beside telling.py; allocates the line.
from slotmq.runtime import const
from slotmq.telling import address

_END = const(4)
_MALFORMED = const(2)
_PROTOCOL = const(3)
_CONNECT_BYTE = const(0x10)
_AUTH = const(0xF0)
_SHOWN = const(24)  # bytes of what is no MQTT
_NOTICE = const(4)
_QUOTA = const(0x97)

# Why one is refused, in the standard's words [5.0, 2.4]: reason codes from 0x80 on. (Bytes,
# since a word in a text would be a name that is kept as it is everywhere, tools/pack.)
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
connection rate exceeded"""
# and the return codes of version 3 among them, from 1 on
_RETURN_CODES = b"\4\5\x08\6\7"


def refused(broker, conn, reason):
    """CONNACK says no; reason: its own, or (return code or reason, fields of CONNECT, what was
    too little or nothing)."""
    text = b"heap" if reason == _QUOTA else b""  # of intake.py
    code, fields, text = reason if isinstance(reason, tuple) else (reason, None, text)
    who = "without an id"
    level = broker.conns.level[conn]
    where, user = address(broker, conn)
    if fields:
        level = fields.level
        if fields.client_id:
            who = repr(fields.read(fields.client_id).decode())
        user = fields.read()
    text = (text and b", too little: " + text).decode()
    what = (who, where, level, user and ", u%r" % user, name(code), text)
    broker.log(_NOTICE, "Client %s [%s, p%d%s] refused: %s%s." % what)


def ended(broker, conn, reason, text):
    """Why a connection without a session ends, with the line it began with if that is no MQTT.

    (In CONNECT and AUTH there are passwords.)"""
    conns = broker.conns
    at = conns.hold_off[conn]
    said = bytes(conns.hold[at : at + min(conns.held[conn], _SHOWN)])
    if not said and reason in (_MALFORMED, _PROTOCOL):
        said = bytes(broker.rx[: min(broker.pkt[_END], _SHOWN)])  # behind it is somebody else's
    if said[:2] == b"\x16\x03":
        return "TLS, and this port speaks MQTT without it"
    if not said or said[0] & 0xF0 == _CONNECT_BYTE or said[0] >= _AUTH:
        return text
    return "%s, no CONNECT but %r" % (text, said.split(b"\r")[0])


def name(reason):
    """What a return code of version 3 or a reason code means, with its number."""
    code = reason
    at = code - 0x80 if code & 0x80 else _RETURN_CODES[min(code, 5) - 1]
    rows = _REASONS.split(b"\n")
    words = (rows[at] if at < len(rows) else b"an unknown reason").decode()
    return ("%s (reason 0x%02x)" if code & 0x80 else "%s (return code %d)") % (words, code)

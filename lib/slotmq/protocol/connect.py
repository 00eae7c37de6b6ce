# connect.py - CONNECT [3.1]: reads the fields, checks them, asks who the client is. Each step
# returns 0 to go on, or the result that ends the connection. If the client may connect,
# protocol/open_session.py follows; a CONNECT of version 5 goes on in v5/connect.py. Owns nothing.
# Control plane: may allocate and free.
from slotmq.fast import utf8_ok
from slotmq.platform import ondemand
from slotmq.platform.runtime import const
from slotmq.protocol.open_session import open_session, refuse

_FLAGS = const(1)
_BODY = const(3)
_END = const(4)
_OK = const(0)
_MALFORMED = const(2)
_PROTOCOL = const(3)
_REFUSED = const(5)
_WAITS = const(14)

# CONNACK return codes [3.2.2.3]
_BAD_LEVEL = const(1)
_BAD_CLIENT_ID = const(2)
_BAD_LOGIN = const(4)
_NOT_AUTHORIZED = const(5)

# Connect flags [3.1.2.3]
_CLEAN = const(2)
_WILL = const(4)
_PASSWORD = const(64)
_USER_NAME = const(128)
# What the payload may have, by which flag, and whether it is text or a topic name [3.1.3-1]
_PAYLOAD = (
    ("client_id", 0, 1),
    ("will_topic", _WILL, 2),
    ("will_message", _WILL, 0),
    ("user_name", _USER_NAME, 1),
    ("password", _PASSWORD, 0),
)
_BRIDGE = const(2)  # of Subscriptions.kind
_QUOTA_OPTIONS = const(3)
_USER_SHOWN = const(32)  # characters


class Fields:
    """What a CONNECT says; each text is (offset, length) in the packet, or None."""

    buf = None  # the packet's
    level = flags = keep_alive = 0
    client_id = will_topic = will_message = user_name = password = None
    why = None  # why the login was refused, for the log
    v5 = None  # the Connect5 of v5/connect.py, if it is of version 5
    # Of version 5; times in seconds
    expiry = will_delay = 0
    will_expiry = None
    owner = 0  # which of access/owners.py, if that is kept
    kind = 0  # 2: another broker's bridge, or one to it, as in Subscriptions.kind
    method = auth_data = user = assigned = answer = None
    server_keep_alive = expiry_lowered = wants_information = False

    def read(self, where=0):
        """One of the texts as bytes, or None. Without `where`: the user name, for the log."""
        if where == 0:
            return (self.user or self.read(self.user_name) or b"").decode()[:_USER_SHOWN]
        return where and bytes(self.buf[where[0] : where[0] + where[1]])


def handle(broker, conn, pkt, buf):
    """CONNECT of every version, up to its answer; a result."""
    five = broker.five
    if five and conn in five.exchanges and five.exchanges[conn][1]:
        # a second one, while AUTH is under way [3.1.0-2]
        return ondemand.take("v5.auth", broker.now).refuse(broker, conn)
    fields = Fields()
    fields.buf = buf
    result = _read_level(broker, conn, buf, pkt, fields)
    if pkt[_FLAGS] and fields.level != 3:
        return _MALFORMED  # [2.2.2-1]
    if result == _REFUSED:
        return refuse(broker, conn, _BAD_LEVEL, fields)
    if result == _OK and fields.level == 5:
        version5 = ondemand.take("v5.connect", broker.now)
        return version5.handle(broker, conn, pkt, buf, fields)
    if result == _OK:
        result = _read_payload(buf, pkt, fields)
    if result != _OK:
        return result
    broker.conns.level[conn] = fields.level
    code = check_login(broker, conn, fields)
    if code < 0:
        return _WAITS
    code = code or choose_client_id(broker, conn, fields)
    code = code or _check_client_id(broker, conn, fields)
    if not code and fields.flags & _WILL:
        flags = fields.flags
        most = broker.conns.option(conn, "max_qos", broker.settings.max_qos)
        if flags >> 3 & 3 > most or flags & 32 and not broker.settings.retain_available:
            return _PROTOCOL
        check_will(broker, conn, buf, fields)
    if code:
        return refuse(broker, conn, code, fields)
    return open_session(broker, conn, buf, fields)


def connect(broker, conn, name, user, flags, time):
    """Open the session of a bridge to another broker (bridge/link.py); a result. name, user: its
    local client id and the user whose rights it has, as bytes; time: its keep-alive."""
    fields = Fields()
    fields.buf = name
    fields.client_id = 0, len(name)
    fields.level = 4
    fields.kind = _BRIDGE
    fields.flags = flags
    fields.keep_alive = time
    fields.user = user
    return open_session(broker, conn, name, fields)


def _read_level(broker, conn, buf, pkt, fields):
    # Protocol name and level. An unknown level is refused with a return code [3.1.2-2], and so is
    # one that the listener does not accept.
    at = pkt[_BODY]
    end = pkt[_END]
    size = buf[at] << 8 | buf[at + 1] if end - at > 1 else 0
    name = bytes(buf[at + 2 : at + 2 + size])
    at += 2 + size
    if at + 4 > end or name not in (b"MQTT", b"MQIsdp"):
        return _PROTOCOL
    level = buf[at]
    if level in (0x83, 0x84) and broker.five:  # as mosquitto's bridges with try_private
        fields.kind = _BRIDGE
        level &= 0x7F
    fields.level = level
    if level != (4 if name == b"MQTT" else 3) and not (level == 5 and size == 4 and broker.five):
        return _REFUSED
    if not broker.conns.option(conn, "accept_protocol_versions", 255) >> level & 1:
        return _REFUSED
    fields.flags = buf[at + 1]
    fields.keep_alive = buf[at + 2] << 8 | buf[at + 3]
    return _OK


def _read_payload(buf, pkt, fields):
    flags = fields.flags
    if not _flags_ok(flags, fields.level):
        return _MALFORMED
    at = pkt[_BODY] + (10 if fields.level == 4 else 12)
    end = pkt[_END]
    for name, bit, text in _PAYLOAD:
        if bit and not flags & bit:
            continue
        if name == "user_name" and at == end and fields.level == 3:
            break  # MQTT 3.1 lets the strings be missing although the flags are set
        n = buf[at] << 8 | buf[at + 1] if at + 2 <= end else 0
        at += 2
        if at + n > end or text and not utf8_ok(buf, at, n, text - 1):
            return _MALFORMED
        setattr(fields, name, (at, n))
        at += n
    return _OK if at == end else _MALFORMED


def _flags_ok(flags, level):
    will_qos = flags >> 3 & 3
    if flags & 1 and level == 4 or will_qos == 3:
        return False  # [3.1.2-3, -14]
    if not flags & _WILL and flags & 0x38:
        return False  # [3.1.2-11, -13, -15]
    return not flags & _PASSWORD or bool(flags & _USER_NAME)  # [3.1.2-22]


def check_login(broker, conn, fields):
    """May the client connect with this user name and password? 0, a return code, or -1: it waits
    until its password has been computed. A hook is asked after the file, and only forbids more."""
    own = broker.conns.quota[conn][_QUOTA_OPTIONS] or {}  # Connections.option()
    has_users = broker.users and own.get("password_file", 1)
    if own and own.get("certificate", 0):
        has_users = ondemand.take("access.certificate", broker.now).check(broker, conn, fields)
        if not has_users:
            return _NOT_AUTHORIZED
    elif has_users:
        code = broker.users.login(broker).check(broker, conn, fields)
        if code:
            return code
    if broker.may_connect:
        return ondemand.take("embed.asking", broker.now).may_connect(broker, conn, fields)
    if has_users or own.get("allow_anonymous", broker.settings.allow_anonymous):
        return 0
    return _NOT_AUTHORIZED if fields.user_name is None else _BAD_LOGIN  # there are no users


def choose_client_id(broker, conn, fields):
    """The client id that the configuration gives to the client; 0 or a return code."""
    settings = broker.settings
    by_name = settings.use_username_as_clientid
    own = broker.conns.quota[conn][_QUOTA_OPTIONS]
    by_name = own.get("use_username_as_clientid", by_name) if own else by_name
    if by_name or settings.clientid_prefixes:
        return ondemand.take("access.client_id", broker.now).handle(broker, conn, fields)
    return 0


def may_be_empty(broker, conn):
    """May the client leave its id to the broker?"""
    here = broker.settings.allow_zero_length_clientid
    return broker.conns.option(conn, "allow_zero_length_clientid", here)


def _check_client_id(broker, conn, fields):
    n = fields.client_id[1]
    if n > broker.limits.client_id_bytes or not _keep_alive_ok(broker, fields.keep_alive):
        return _BAD_CLIENT_ID
    if fields.level == 3:
        longest = broker.settings.mqtt31_client_id_max
        return _BAD_CLIENT_ID if n == 0 or longest and n > longest else 0
    if n == 0 and not (fields.flags & _CLEAN and may_be_empty(broker, conn)):
        return _BAD_CLIENT_ID  # [3.1.3-8]
    return 0


def _keep_alive_ok(broker, keep_alive):
    # CONNACK of 3.1.1 cannot set a shorter one, so the client id is refused, as by mosquitto.
    most = broker.settings.max_keepalive
    return most in (0, 65535) or 0 < keep_alive <= most


def check_will(broker, conn, buf, fields):
    """Clear the will flag if the client may not publish this message: the will is dropped."""
    topic, n = fields.will_topic
    size = fields.will_message[1]
    is_special = buf[topic] == 36 or 0 < broker.settings.message_size_limit < size
    publishing = is_special and ondemand.take("embed.publishing", broker.now)
    forbidden = publishing and publishing.refused(broker, buf, topic, n, fields, size)
    if not forbidden and broker.may_publish:
        asking = ondemand.take("embed.asking", broker.now)
        forbidden = not asking.may_publish(broker, conn, fields)
    if forbidden:
        fields.flags &= ~_WILL

# connect.py - CONNECT of every version [3.1]: what it says, and who may come in. handle() goes
# through STEPS, for example:
#
#     def check_keep_alive(broker, conn, fields):
#         if 0 < fields.keep_alive < broker.settings.min_keepalive:
#             fields.why = b"min_keepalive"
#             return REFUSE_USER
#         return 0
#
# A step returns 0 to go on, or a refusal: return code << 8 | reason code, what CONNACK says in
# version 3 and in 5. Without a return code version 3 has no word for it, so the connection ends
# without CONNACK. fields.why is for the log. Below 0: the CONNECT goes on later. Owns nothing.
# Control plane: may allocate and free.
from slotmq.constants import (BODY, BRIDGE, CLEAN, END, FLAGS, MALFORMED_PACKET, NO_QOS, NO_RETAIN,
    PASSWORD, PROTOCOL_ERROR, QUOTA_OPTIONS, REFUSE_ID, REFUSE_LEVEL, REFUSE_LOGIN, REFUSE_TOPIC,
    REFUSE_USER, RETAIN_FLAG, USER_NAME, USER_SHOWN, WILL)
from slotmq.delivery.lifecycle import is_own
from slotmq.fast import utf8_ok
from slotmq.platform import ondemand
from slotmq.protocol.open_session import OPENING, go_through


# What the payload may have, by which flag, and whether it is text or a topic name [3.1.3-1]
_PAYLOAD = (
    ("client_id", 0, 1),
    ("will_topic", WILL, 2),
    ("will_message", WILL, 0),
    ("user_name", USER_NAME, 1),
    ("password", PASSWORD, 0),
)


class Fields:
    """What a CONNECT says; each text is (offset, length) in the packet, or None."""

    trusted = False  # a client of the program itself, or its bridge: nobody is asked about it
    level = flags = keep_alive = 0
    client_id = will_topic = will_message = user_name = password = None
    why = None  # why it was refused, for the log
    full = b""  # for the log: what was too little
    v5 = None  # the module v5/connect.py, if it is of version 5
    # Of version 5; times in seconds
    expiry = will_delay = 0
    will_expiry = None
    owner = 0  # which of access/owners.py, if that is kept
    kind = 0  # 2: another broker's bridge, or one to it, as in Subscriptions.kind
    method = auth_data = user = assigned = answer = None
    server_keep_alive = expiry_lowered = wants_information = False
    # What the steps of open_session.py have found
    name = None  # the client id, also one that the broker has given
    session = conn = will = 0xFFFF  # of that id, its older connection, the stored will

    def __init__(self, buf, pkt=None):
        self.buf = buf
        self.pkt = pkt

    def read(self, where=0):
        """One of the texts as bytes, or None. Without `where`: the user name, for the log."""
        if where == 0:
            return (self.user or self.read(self.user_name) or b"").decode()[:USER_SHOWN]
        return where and bytes(self.buf[where[0] : where[0] + where[1]])


def handle(broker, conn, pkt, buf):
    """CONNECT of every version, up to its answer; a result."""
    fields = Fields(buf, pkt)
    fields.trusted = is_own(broker, conn)
    return go_through(STEPS, broker, conn, fields)


def connect(broker, conn, name, user, flags, time):
    """Open the session of a bridge to another broker (bridge/link.py); a result. name, user: its
    local client id and the user whose rights it has, as bytes; time: its keep-alive."""
    fields = Fields(name)
    fields.trusted = True
    fields.client_id = 0, len(name)
    fields.level = 4
    fields.kind = BRIDGE
    fields.flags = flags
    fields.keep_alive = time
    fields.user = user
    return go_through(OPENING, broker, conn, fields)


def is_first(broker, conn, fields):
    """No CONNECT may come while AUTH is under way [3.1.0-2]."""
    five = broker.five
    if five and conn in five.exchanges and five.exchanges[conn][1]:
        return ondemand.take("v5.auth", broker.now).fill(broker, conn, fields, PROTOCOL_ERROR)
    return 0


def read_level(broker, conn, fields):
    """Protocol name and level. An unknown level is refused with a return code [3.1.2-2], and so is
    one that the listener does not accept."""
    buf = fields.buf
    at = fields.pkt[BODY]
    end = fields.pkt[END]
    size = buf[at] << 8 | buf[at + 1] if end - at > 1 else 0
    name = bytes(buf[at + 2 : at + 2 + size])
    at += 2 + size
    if at + 4 > end or name not in (b"MQTT", b"MQIsdp"):
        return PROTOCOL_ERROR
    level = buf[at]
    if level in (0x83, 0x84) and broker.five:  # as mosquitto's bridges with try_private
        fields.kind = BRIDGE
        level &= 0x7F
    fields.level = level
    if fields.pkt[FLAGS] and level != 3:
        return MALFORMED_PACKET  # [2.2.2-1]
    if level != (4 if name == b"MQTT" else 3) and not (level == 5 and size == 4 and broker.five):
        return REFUSE_LEVEL
    if not broker.conns.option(conn, "accept_protocol_versions", 255) >> level & 1:
        return REFUSE_LEVEL
    fields.flags = buf[at + 1]
    fields.keep_alive = buf[at + 2] << 8 | buf[at + 3]
    return 0


def read_payload(broker, conn, fields):
    """What follows: the payload, in version 5 properties before it."""
    flags = fields.flags
    if fields.level == 5:
        fields.v5 = ondemand.take("v5.connect", broker.now)
        broker.conns.level[conn] = 5
        return fields.v5.read(broker, conn, fields)
    if not _flags_ok(flags, fields.level):
        return MALFORMED_PACKET
    buf = fields.buf
    at = fields.pkt[BODY] + (10 if fields.level == 4 else 12)
    end = fields.pkt[END]
    for name, bit, text in _PAYLOAD:
        if bit and not flags & bit:
            continue
        if name == "user_name" and at == end and fields.level == 3:
            break  # MQTT 3.1 lets the strings be missing although the flags are set
        n = buf[at] << 8 | buf[at + 1] if at + 2 <= end else 0
        at += 2
        if at + n > end or text and not utf8_ok(buf, at, n, text - 1):
            return MALFORMED_PACKET
        setattr(fields, name, (at, n))
        at += n
    broker.conns.level[conn] = fields.level
    return 0 if at == end else MALFORMED_PACKET


def _flags_ok(flags, level):
    will_qos = flags >> 3 & 3
    if flags & 1 and level == 4 or will_qos == 3:
        return False  # [3.1.2-3, -14]
    if not flags & WILL and flags & 0x38:
        return False  # [3.1.2-11, -13, -15]
    return not flags & PASSWORD or bool(flags & USER_NAME)  # [3.1.2-22]


def check_login(broker, conn, fields):
    """May the client come in as this user? A hook is asked after the file, and only forbids
    more."""
    if fields.trusted:
        return 0
    if fields.method is not None:
        return ondemand.take("v5.auth", broker.now).auth(broker, conn, fields)
    own = broker.conns.quota[conn][QUOTA_OPTIONS] or {}  # Connections.option()
    has_users = broker.users and own.get("password_file", 1)
    if own and own.get("certificate", 0):
        has_users = ondemand.take("access.certificate", broker.now).check(broker, conn, fields)
        if not has_users:
            return REFUSE_USER
    elif has_users:
        refusal = broker.users.login(broker).check(broker, conn, fields)
        if refusal:
            return refusal
    if broker.may_connect:
        return ondemand.take("embed.asking", broker.now).may_connect(broker, conn, fields)
    if has_users or own.get("allow_anonymous", broker.settings.allow_anonymous):
        return 0
    return REFUSE_USER if fields.user_name is None else REFUSE_LOGIN  # there are no users


def choose_client_id(broker, conn, fields):
    """The client id that the configuration gives to the client."""
    settings = broker.settings
    by_name = settings.use_username_as_clientid
    by_name = broker.conns.option(conn, "use_username_as_clientid", by_name)
    if (by_name or settings.clientid_prefixes) and not fields.trusted:
        return ondemand.take("access.client_id", broker.now).handle(broker, conn, fields)
    return 0


def check_client_id(broker, conn, fields):
    """Is the client id neither too long nor too short?"""
    n = fields.client_id[1]
    settings = broker.settings
    longest = broker.limits.client_id_bytes
    if fields.level == 3:
        is_ok = 0 < n <= (settings.mqtt31_client_id_max or longest)
    elif n or fields.trusted:
        is_ok = True
    else:
        is_ok = fields.level == 5 or fields.flags & CLEAN  # [3.1.3-8]
        here = settings.allow_zero_length_clientid
        is_ok = is_ok and broker.conns.option(conn, "allow_zero_length_clientid", here)
    return 0 if is_ok and n <= longest else REFUSE_ID


def limit_keep_alive(broker, conn, fields):
    """max_keepalive. CONNACK of version 3 cannot set a shorter one: as mosquitto, it refuses the
    client id."""
    most = broker.settings.max_keepalive
    if fields.trusted or most in (0, 65535) or 0 < fields.keep_alive <= most:
        return 0
    if fields.v5:
        fields.keep_alive = most
        fields.server_keep_alive = True
        return 0
    fields.why = b"keep-alive %d s, max_keepalive %d" % (fields.keep_alive, most)
    return REFUSE_ID


def check_will(broker, conn, fields):
    """QoS, RETAIN and topic of the will. One that the client may not publish is dropped."""
    flags = fields.flags
    if not flags & WILL:
        return 0
    buf = fields.buf
    settings = broker.settings
    topic, n = fields.will_topic
    if flags >> 3 & 3 > broker.conns.option(conn, "max_qos", settings.max_qos):
        return NO_QOS
    if flags & RETAIN_FLAG and not settings.retain_available:
        return NO_RETAIN
    if n > broker.limits.topic_bytes:
        fields.full = b"topic_bytes for the will"
        return REFUSE_TOPIC
    size = fields.will_message[1]
    is_special = buf[topic] == 36 or 0 < settings.message_size_limit < size
    publishing = is_special and ondemand.take("embed.publishing", broker.now)
    forbidden = publishing and publishing.refused(broker, buf, topic, n, fields, size)
    if not forbidden and broker.may_publish:
        asking = ondemand.take("embed.asking", broker.now)
        forbidden = not asking.may_publish(broker, conn, fields)
    if forbidden:
        fields.flags &= ~WILL
    return 0


STEPS = (
    is_first,
    read_level,
    read_payload,
    check_login,
    choose_client_id,
    check_client_id,
    limit_keep_alive,
    check_will,
) + OPENING

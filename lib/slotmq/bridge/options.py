# options.py - what a bridge is told: where it connects to, which topics pass, as whom. Owns the
# defaults, which are mosquitto's, and the checks. Loaded on demand for a `connection` of the
# configuration, and by Broker.bridge(). Its classes stay and have no methods: one would keep the
# whole module in the heap. Allocates.
from slotmq.fast import filter_ok, utf8_ok
from slotmq.platform import ondemand
from slotmq.platform.dial import host_name

_DIRECTIONS = ("out", "in", "both")
_OF_SUBSCRIBE = 11  # bytes of a SUBSCRIBE beside its filter, at most
_OF_CONNECT = 17  # bytes of a CONNECT beside its texts, at most
_OF_CONNECT_5 = 18  # and with MQTT 5.0
_TEXT_BYTES = 65535  # bytes of a text
EACH_BYTES = 900  # heap of a bridge
TOPIC_BYTES = 250
_NO_KEYS = ("port", "lines", "at", "place", "context")
TLS = """bridge_cafile bridge_capath bridge_tls_use_os_certs bridge_certfile bridge_keyfile
bridge_insecure bridge_alpn bridge_ciphers bridge_tls_version bridge_psk bridge_identity"""
_TRUST = ("bridge_cafile", "bridge_capath", "bridge_tls_use_os_certs")
_IN_CONNECT = ("remote_username", "remote_password")
_ADDRESS = "an address: HOST or HOST:PORT, IPv6 in brackets"
_TEXTS = ("name", "remote_clientid", "local_clientid", "local_username", "notification_topic")
_TOPIC = (
    "topics as tuples: a filter, perhaps out, in or both, a QoS, and a prefix here and one there"
)
_OF_5 = ("bridge_receive_maximum", "bridge_session_expiry_interval", "bridge_max_topic_alias")


class Topic:
    """What passes: the filters here and there, with prefixes, as bytes; the two prefixes;
    goes_out, comes_in, qos.

    A message keeps what its topic has behind the prefix; without a filter the prefixes are whole
    topic names."""


def topic(pattern, direction="out", qos=0, local="", remote=""):
    """A Topic. ValueError: it is not possible."""
    if direction not in _DIRECTIONS:
        raise ValueError("out, in or both")
    if not isinstance(qos, int) or not 0 <= qos <= 2:
        raise ValueError("a QoS: 0, 1 or 2")
    one = Topic()
    one.goes_out = direction != "in"
    one.comes_in = direction != "out"
    one.qos = qos
    one.prefixes = local.encode(), remote.encode()  # here, there
    one.filters = one.prefixes[0] + pattern.encode(), one.prefixes[1] + pattern.encode()
    for prefix in one.prefixes:
        if not pattern and not prefix:
            raise ValueError("a filter, or two prefixes that are topic names")
        if b"+" in prefix or b"#" in prefix:
            raise ValueError("prefixes without wildcards")
    if one.goes_out and one.filters[0][:7] == b"$share/":
        raise ValueError("out without $share: each message goes out once")
    for name in one.filters:
        if not filter_ok(name, 0, len(name)) or not utf8_ok(name, 0, len(name), 0):
            raise ValueError("a topic filter, also behind each prefix")
    return one


class Options:
    """One bridge; made by options()."""

    port = 1883  # of an address that has none
    remote_clientid = None  # HOST.NAME
    local_clientid = None  # local.HOST.NAME
    remote_username = None
    remote_password = None
    local_username = None  # None: what comes in is not checked
    cleansession = False
    local_cleansession = None  # as cleansession
    keepalive_interval = 60  # seconds
    # Seconds: (the first, the longest), perhaps with how long a connection must stand until the
    # pauses begin anew; or one number
    restart_timeout = (5, 30)
    try_private = True
    notifications = True
    notifications_local_only = False
    notification_topic = None
    bridge_bind_address = None
    bridge_protocol_version = "mqttv311"
    bridge_attempt_unsubscribe = True
    bridge_outgoing_retain = True
    bridge_max_packet_size = 0  # bytes of what goes out; 0: what the other broker says
    # Of MQTT 5.0:
    bridge_receive_maximum = 0  # 0: limit received
    bridge_session_expiry_interval = None  # seconds; None: 0 with cleansession, else for ever
    bridge_max_topic_alias = 0  # in each direction
    # TLS
    bridge_cafile = None
    bridge_capath = None
    bridge_tls_use_os_certs = False
    bridge_certfile = None
    bridge_keyfile = None
    bridge_insecure = False
    bridge_alpn = None
    bridge_ciphers = None
    bridge_tls_version = None  # tlsv1.2
    bridge_psk = None
    bridge_identity = None
    context = None  # an SSLContext, see load()
    round_robin = False
    start_type = "automatic"
    idle_timeout = 60  # seconds; this and the next are of start_type lazy
    threshold = 10  # messages
    is_wrong = False  # has the configuration a wrong line for it?
    # Of the configuration: its keys and values, to see whether a reload has changed them
    lines = ()
    at = place = None


def options(name, addresses=(), topics=(), **values):
    """The Options of one bridge. TypeError, ValueError: they are not possible."""
    one = Options()
    if not isinstance(name, str) or not name:
        raise ValueError("a name")
    one.name = name
    one.addresses = [address_of(each) for each in addresses]
    for each in topics:
        if not isinstance(each, (tuple, list)) or not 1 <= len(each) <= 5:
            raise ValueError(_TOPIC)
        if not all([isinstance(word, str) for word in list(each[:2]) + list(each[3:])]):
            raise ValueError(_TOPIC)
    one.topics = [topic(*each) for each in topics]
    if "clientid" in values:
        values["remote_clientid"] = values.pop("clientid")
    for key in values:
        if not hasattr(Options, key) or key in _NO_KEYS:
            raise TypeError("a bridge has no " + key)
        if values[key] is not None or getattr(Options, key) is not None:
            ondemand.take("bridge.conf", 0).check_value(key, values[key])
        setattr(one, key, values[key])
    return one


def names_of(one):
    """Its client ids there and here, and the topic of its state."""
    remote = one.remote_clientid or "%s.%s" % (host_name(), one.name)
    state = one.notification_topic or "$SYS/broker/connection/%s/state" % remote
    return remote, one.local_clientid or "local." + remote, state


def check(one, limits, settings):
    """ValueError: a broker with these limits and settings cannot have this bridge."""
    if not one.addresses:
        raise ValueError("an address")
    if not one.topics:
        raise ValueError("a topic")
    if one.remote_password is not None and one.remote_username is None:
        raise ValueError("remote_username for remote_password")
    if settings.mqtt_versions != 5:
        raise ValueError("mqtt_versions 5: No Local and RETAIN need its code")
    _check_names(one, limits)
    if one.notifications:
        for key in ("notification_topic", "remote_clientid", "name"):
            value = getattr(one, key) or ""
            if "+" in value or "#" in value:  # it is in the topic of the state message
                raise ValueError("%s without wildcards, or notifications false" % key)
    if one.bridge_protocol_version != "mqttv50":
        for key in _OF_5:
            if getattr(one, key) != getattr(Options, key):
                raise ValueError("bridge_protocol_version mqttv50 for %s" % key)
    if one.start_type == "lazy":
        _check_lazy(one, limits, settings)
    most = limits.topic_bytes
    for each in one.topics:
        for name in each.filters:
            levels = filter_ok(name, 0, len(name))
            if len(name) > most or levels > limits.levels:
                what = "topics of at most %d bytes in %d levels: limit topic_bytes, levels"
                raise ValueError(what % (most, limits.levels))
            if len(name) + _OF_SUBSCRIBE > limits.tx_bytes:
                raise ValueError("limit tx_bytes %d for a SUBSCRIBE" % (len(name) + _OF_SUBSCRIBE))


def _check_lazy(one, limits, settings):
    # Only what waits makes it connect.
    clean = one.local_cleansession
    if one.cleansession if clean is None else clean:
        raise ValueError("local_cleansession false for start_type lazy")
    waits = [each.qos or settings.queue_qos0_messages for each in one.topics if each.goes_out]
    if not any(waits):
        raise ValueError("a topic out at QoS 1 or 2 for start_type lazy: QoS 0 does not wait")
    most = min(limits.deliveries, limits.messages) * settings.max_session_share // 100
    most = min(settings.max_queued_messages or limits.queued, most)
    if one.threshold > most:
        raise ValueError("threshold: at most %d, see limit queued, max_session_share" % most)


def _check_names(one, limits):
    for key in _TEXTS + _IN_CONNECT:
        data = (getattr(one, key) or "").encode()
        if len(data) > _TEXT_BYTES or not utf8_ok(data, 0, len(data), 0):
            raise ValueError("%s: at most %d bytes of UTF-8" % (key, _TEXT_BYTES))
    remote, local, state = names_of(one)
    if len(local.encode()) > limits.client_id_bytes:
        what = "a local_clientid of at most %d bytes, see limit client_id_bytes; %s"
        why = "without one it is local. and the remote_clientid"
        raise ValueError(what % (limits.client_id_bytes, why))
    state = state.encode()
    texts = [remote] + [getattr(one, key) or "" for key in _IN_CONNECT]
    size = _OF_CONNECT + (_OF_CONNECT_5 if one.bridge_protocol_version == "mqttv50" else 0)
    size += sum([2 + len(text.encode()) for text in texts])
    if one.notifications:
        if len(state) > limits.topic_bytes:
            what = "a notification_topic of at most %d bytes: limit topic_bytes"
            raise ValueError(what % limits.topic_bytes)
        size += 5 + len(state)
    if size > limits.tx_bytes:
        raise ValueError("limit tx_bytes %d for its CONNECT" % size)
    if one.bridge_bind_address and not _is_ip(one.bridge_bind_address):
        raise ValueError("bridge_bind_address: an IP address of this computer")


def _is_ip(text):
    if ":" in text:
        return not text.partition("%")[0].strip("0123456789abcdefABCDEF:.")
    parts = text.split(".")
    return len(parts) == 4 and all([part.isdigit() and int(part) < 256 for part in parts])


def tls_keys(one):
    """The keys of TLS that are set. With one of them the bridge never speaks plain MQTT."""
    return [key for key in TLS.split() if getattr(one, key)]


def load(one):
    """Check the keys of TLS together, and load their files. ValueError: they are wrong."""
    keys = tls_keys(one)
    if not keys:
        return
    secure = ondemand.take("bridge.secure", 0)
    for key in secure.NOT_HERE:
        if key in keys:
            raise ValueError("no %s: %s" % (key, secure.WHY_NOT))
    if bool(one.bridge_psk) != bool(one.bridge_identity):
        raise ValueError("bridge_psk and bridge_identity together")
    if not one.bridge_psk and not [key for key in keys if key in _TRUST]:
        raise ValueError("bridge_cafile, bridge_capath or bridge_tls_use_os_certs true")
    if bool(one.bridge_certfile) != bool(one.bridge_keyfile):
        raise ValueError("bridge_certfile and bridge_keyfile together")
    one.context = secure.make_client_context(one)


def ram_bytes(one, limits):
    """The heap of this bridge, beside the code of all."""
    size = EACH_BYTES + TOPIC_BYTES * len(one.topics)
    if is_mapped(one):
        size += 3200 + 4 * limits.topic_bytes + limits.rx_bytes + limits.tx_bytes
    return size


def is_mapped(one):
    """Must a PUBLISH be changed on its way? Mostly since its topic has another name there."""
    return not one.bridge_outgoing_retain or any(
        [each.prefixes[0] != each.prefixes[1] for each in one.topics]
    )


def requests(one, five):
    """What it asks for as a client: [(first byte, filter, what follows)]. five: version5.py, or
    None."""
    ins = [each for each in one.topics if each.comes_in]
    found = []
    for each in ins:
        name = each.filters[1]
        tail = five.options_of(name, each.qos) if five else bytes((each.qos,))
        found.append((0x82, name, tail))
    if one.bridge_attempt_unsubscribe and not one.cleansession:
        names = [request[1] for request in found]
        outs = [each.filters[1] for each in one.topics if each.goes_out]
        found += [(0xA2, name, b"") for name in outs if name not in names]
    return found


def may_echo(one):
    """May what comes in match what goes out? Then No Local must be looked at."""
    outs = [each.filters[0].split(b"/") for each in one.topics if each.goes_out]
    for each in one.topics:
        if each.comes_in:
            levels = each.filters[0].split(b"/")
            if any([_have_common(levels, other) for other in outs]):
                return True
    return False


def _have_common(a, b):
    # Is there a topic that both filters match? Both as lists of levels.
    i = 0
    while i < len(a) and i < len(b):
        if b"#" in (a[i], b[i]):
            return True
        if a[i] != b[i] and b"+" not in (a[i], b[i]):
            return False
        i += 1
    return a[i:] + b[i:] in ([], [b"#"])  # `a/#` matches `a`


def rows(settings, limits):
    """The rows of config/budget.py: the texts of each, and with prefixes its buffers."""
    size = sum([ram_bytes(each, limits) for each in settings.connections])
    return [("bridges", size, len(settings.connections))]


def address_of(text):
    """HOST, HOST:PORT, [IPv6] or [IPv6]:PORT as (host, port)."""
    host, port = text, ""
    if not isinstance(text, str):
        raise ValueError(_ADDRESS)
    if text.isdigit():
        raise ValueError(_ADDRESS + ", with a colon before the port")
    if text[:1] == "[" and "]" in text:
        host, _, port = text[1:].partition("]")
        if port[:1] == ":":
            port = port[1:] or "0"
        elif port:
            host = ""
    elif ":" in text:  # mosquitto knows no brackets: behind the last one stands the port
        at = text.rfind(":")
        host, port = text[:at], text[at + 1 :] or "0"
        if ":" in host and "::" not in host and host.count(":") != 7 or host.endswith(":"):
            host = ""
    is_wrong = ":" in host and not _is_ip(host)
    if not host or is_wrong or port and not (port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(_ADDRESS)
    return host, int(port or Options.port)

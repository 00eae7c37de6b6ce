# options.py - what a bridge is told: where it connects to, which topics pass, as whom. Owns the
# defaults, which are mosquitto's, and the checks. Loaded at the start, with a `connection` of the
# configuration, and by Broker.bridge(); allocates.
from slotmq.fast import filter_ok, utf8_ok
from slotmq.platform import ondemand
from slotmq.platform.runtime import const

_DIRECTIONS = ("out", "in", "both")
_OF_SUBSCRIBE = const(11)  # bytes of a SUBSCRIBE beside its filter, at most
_SMALLEST = const(128)  # bytes of a packet that each limit lets pass
EACH_BYTES = 900  # heap of a bridge
TOPIC_BYTES = 250
_NO_KEYS = ("port", "lines", "at", "place", "context")
TLS = """bridge_cafile bridge_capath bridge_tls_use_os_certs bridge_certfile bridge_keyfile
bridge_insecure bridge_alpn bridge_ciphers bridge_tls_version bridge_psk bridge_identity"""
_TRUST = ("bridge_cafile", "bridge_capath", "bridge_tls_use_os_certs")
_OF_5 = ("bridge_receive_maximum", "bridge_session_expiry_interval", "bridge_max_topic_alias")


class Topic:
    """What passes: the filter without prefixes as bytes, direction, QoS, and the two prefixes.

    A message keeps what its topic has behind the prefix; without a filter the prefixes are
    whole topic names."""

    def __init__(self, pattern, direction="out", qos=0, local="", remote=""):
        if direction not in _DIRECTIONS:
            raise ValueError("out, in or both")
        if qos not in (0, 1, 2):
            raise ValueError("a QoS: 0, 1 or 2")
        self.goes_out = direction != "in"
        self.comes_in = direction != "out"
        self.qos = qos
        self.prefixes = local.encode(), remote.encode()  # here, there
        self.filters = self.prefixes[0] + pattern.encode(), self.prefixes[1] + pattern.encode()
        for prefix in self.prefixes:
            if not pattern and not prefix:
                raise ValueError("a filter, or two prefixes that are topic names")
            if b"+" in prefix or b"#" in prefix:
                raise ValueError("prefixes without wildcards")
        for name in self.filters:
            if not filter_ok(name, 0, len(name)) or not utf8_ok(name, 0, len(name), 0):
                raise ValueError("a topic filter, also behind each prefix")


class Options:
    """One bridge."""

    port = 1883  # of an address that has none
    remote_clientid = None  # HOST.NAME
    local_clientid = None  # local.HOST.NAME
    remote_username = None
    remote_password = None
    local_username = None  # None: what comes in is not checked
    cleansession = False
    local_cleansession = None  # as cleansession
    keepalive_interval = 60  # seconds
    restart_timeout = (5, 30)  # seconds: (the first, the longest), or one number
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
    # Of the configuration: its keys and values, to see whether a reload has changed them
    lines = ()
    at = place = None

    def __init__(self, name, addresses=(), topics=(), **values):
        self.name = name
        self.addresses = [address_of(each) for each in addresses]
        self.topics = [Topic(*each) for each in topics]
        for key in values:
            if not hasattr(Options, key) or key in _NO_KEYS:
                raise TypeError("a bridge has no " + key)
            setattr(self, key, values[key])

    def check(self, limits, settings):
        """ValueError: a broker with these limits and settings cannot have this bridge."""
        if not self.addresses:
            raise ValueError("an address")
        if not self.topics:
            raise ValueError("a topic")
        if self.remote_password is not None and self.remote_username is None:
            raise ValueError("remote_username for remote_password")
        if settings.mqtt_versions != 5:
            raise ValueError("mqtt_versions 5: No Local and RETAIN need its code")
        if 0 < self.bridge_max_packet_size < _SMALLEST:
            raise ValueError("bridge_max_packet_size: 0, or at least %d" % _SMALLEST)
        if self.bridge_protocol_version != "mqttv50":
            for key in _OF_5:
                if getattr(self, key) != getattr(Options, key):
                    raise ValueError("bridge_protocol_version mqttv50 for %s" % key)
        most = limits.topic_bytes
        for topic in self.topics:
            for name in topic.filters:
                levels = filter_ok(name, 0, len(name))
                if len(name) > most or levels > limits.levels:
                    what = "topics of at most %d bytes in %d levels: limit topic_bytes, levels"
                    raise ValueError(what % (most, limits.levels))
                if len(name) + _OF_SUBSCRIBE > limits.tx_bytes:
                    raise ValueError(
                        "limit tx_bytes %d for a SUBSCRIBE" % (len(name) + _OF_SUBSCRIBE)
                    )

    def tls_keys(self):
        """The keys of TLS that are set. With one of them the bridge never speaks plain MQTT."""
        return [key for key in TLS.split() if getattr(self, key)]

    def load(self):
        """Check the keys of TLS together, and load their files. ValueError: they are wrong."""
        keys = self.tls_keys()
        if not keys:
            return
        secure = ondemand.take("bridge.secure", 0)
        for key in secure.NOT_HERE:
            if key in keys:
                raise ValueError("no %s: %s" % (key, secure.WHY_NOT))
        if bool(self.bridge_psk) != bool(self.bridge_identity):
            raise ValueError("bridge_psk and bridge_identity together")
        if not self.bridge_psk and not [key for key in keys if key in _TRUST]:
            raise ValueError("bridge_cafile, bridge_capath or bridge_tls_use_os_certs true")
        if bool(self.bridge_certfile) != bool(self.bridge_keyfile):
            raise ValueError("bridge_certfile and bridge_keyfile together")
        self.context = secure.make_context(self)

    def ram_bytes(self, limits):
        """The heap of this bridge, beside the code of all."""
        size = EACH_BYTES + TOPIC_BYTES * len(self.topics)
        if self.is_mapped():
            size += 500 + 4 * limits.topic_bytes + limits.rx_bytes + limits.tx_bytes
        return size

    def is_mapped(self):
        """Must a PUBLISH be changed on its way? Mostly since its topic has another name there."""
        return not self.bridge_outgoing_retain or any(
            [topic.prefixes[0] != topic.prefixes[1] for topic in self.topics]
        )


def rows(settings, limits):
    """The rows of config/budget.py: the texts of each, and with prefixes its buffers."""
    size = sum([each.ram_bytes(limits) for each in settings.connections])
    return [("bridges", size, len(settings.connections))]


def address_of(text):
    """HOST, HOST:PORT, [IPv6] or [IPv6]:PORT as (host, port)."""
    host, port = text, ""
    if text[:1] == "[" and "]" in text:
        host, _, port = text[1:].partition("]")
        if port[:1] == ":":
            port = port[1:] or "0"
        elif port:
            host = ""
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
        port = port or "0"
    elif text[:1] == "[":
        host = ""
    if not host or port and not (port.isdigit() and 0 < int(port) < 65536):
        raise ValueError("an address: HOST or HOST:PORT, IPv6 in brackets")
    return host, int(port or Options.port)

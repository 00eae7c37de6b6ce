# settings.py - how the broker behaves: every setting with its default.
#
# Owns the settings; where mosquitto has a key of that name, it has the same meaning. The sizes of
# the tables are in config/limits.py, the checks of settings against them in config/policies.py.
# The defaults are attributes of the class, so that an instance has only those that differ;
# config/mosquitto_conf.py reads a file into an instance. They are the types, too, where no comment
# says it. The broker reads most attributes when it needs them; apply_settings() of control.py
# takes over the others. Allocates at the start: the instance, a list and a dict.
from slotmq.platform import ondemand


class ConfError(Exception):
    """The configuration cannot be used; the text says where and what was expected."""


class Settings:
    """The settings of one broker; keyword arguments replace the defaults."""

    # Connections: which clients are accepted, and timeouts.
    allow_anonymous = True
    password_file = None  # type: str | None  # users; see `slotmq passwd`
    allow_zero_length_clientid = True
    use_username_as_clientid = False
    clientid_prefixes = b""  # which every client id must begin with
    auto_id_prefix = b"auto-"  # at most 15 bytes: 8 digits follow, and 23 always fit
    mqtt31_client_id_max = 0  # bytes, for MQTT 3.1 clients; its own rule is 23
    max_keepalive = 65535  # seconds; less than this also refuses keep-alive 0; 0: no bound
    max_connections = 0  # of all listeners together; 0, here and below: the table's size
    connect_timeout = 10  # seconds that a connection may take to send CONNECT
    packet_timeout = 10  # seconds that a packet may stay incomplete

    # Messages: how large, at which QoS, and how many wait for one session.
    max_packet_size = 0  # bytes of a whole packet
    message_size_limit = 0  # bytes of a payload
    max_qos = 2
    retain_available = True
    max_inflight_messages = 0
    max_queued_messages = 0
    max_session_share = 50  # percent of deliveries, message slots, bytes that one session has
    max_offline_share = 75  # percent in use above which only sessions that use little get more
    queue_qos0_messages = False  # for sessions that are offline
    upgrade_outgoing_qos = False  # deliver at the subscription's QoS, not the lower one
    allow_duplicate_messages = False  # once for each overlapping subscription
    qos2_delivery = "receive"  # deliver at the PUBLISH; "release": at its PUBREL
    mqtt_versions = 5  # the highest that is served; 3: neither code nor RAM for version 5
    max_topic_alias = 65535  # highest alias that a client may use; limit aliases bounds it too
    max_topic_alias_broker = 65535  # the same for the broker
    persistent_client_expiration = 0  # the longest session expiry, in seconds; 0: no bound
    response_information = None  # type: str | None  # for clients that ask for it
    server_reference = None  # type: str | None  # another server, for clients that are refused
    acl_file = None  # type: str | None  # who may read and write which topics
    retry_interval = 0  # seconds until an unacknowledged packet is sent again; 0: never

    # Do sessions and messages outlive a power cut?
    persistence = False

    connections = ()  # type: tuple | list  # Options of bridge/options.py, of each `connection`

    # The process.
    set_tcp_nodelay = True  # mosquitto has false: small writes wait for acknowledgements then
    sys_interval = 10  # seconds between two updates of $SYS; 0: none
    log_type = 15  # platform/log.py's bits: error, warning, notice, information
    # "stdout", "stderr", "file PATH", "syslog", "topic"
    log_dest = ("stderr",)  # type: tuple[str, ...] | list[str]
    pid_file = None  # type: str | None

    def __init__(self, when_full=None, **values):
        # (host or None for every address, port, its max_connections, its other settings by name);
        # port 0: the host is the path of a unix domain socket
        self.listeners = []
        self.when_full = {}
        ondemand.take("config.policies", 0).fill(self, when_full or {}, values)

    def check(self, limits):
        """Raise ValueError for a setting that a broker with these limits cannot honour."""
        ondemand.take("config.policies", 0).check(self, limits)

"""The table of every key: what it means here, its default here and in mosquitto 2.1.

`slotmq config --keys` prints it, docs/configure.md has it. Which keys are served, with their kinds
and bounds, is in slotmq.config.mosquitto_conf, and why others are not in slotmq.config.other_keys.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from slotmq.access import login
from slotmq.config import other_keys
from slotmq.config.mosquitto_conf import FIELDS
from slotmq.config.policies import rows
from slotmq.config.settings import Settings
from slotmq.journal import start as journal
from slotmq.recorder import start as recorder

# key|mosquitto's default|meaning. `=`: the default is the same; `own`: mosquitto has no such key.
SERVED = """\
listener|=|`listener PORT [ADDRESS]`; several add up. `listener 0 PATH`: a unix domain socket, \
with CPython
port|=|mosquitto's default listener
bind_address|=|its address
max_connections|unlimited|of the listener above it, where a reload does not change it; above \
the first `listener`, of all together
global_max_connections|unlimited|of all listeners together; the lower of both counts
bind_interface|=|of the listener above it: the network interface, on Linux with CPython
socket_domain|=|of the listener above it: `ipv4` or `ipv6`, if it has no address; without it both
accept_protocol_versions|=|of the listener above it: `3` (MQTT 3.1), `4` (3.1.1), `5`, with \
commas; without it all that `mqtt_versions` serves
protocol|=|of the listener above it: `mqtt`, or `websockets` for \
[MQTT over WebSocket](websocket.md)
websockets_origin|=|of the listener above it: an origin whose pages may connect; several add \
up. Without one all may
http_dir|=|of the listener above it, with `protocol websockets`: a folder whose files are \
[served](websocket.md#files)
certfile|=|of the listener above it, which speaks [TLS](tls.md) then: its \
certificate and those between it and the CA, in PEM. A reload reads the files again, for new \
connections
keyfile|=|of the listener above it: the key of that certificate, in PEM, without a password
cafile|=|of the listener above it: certificates of the CAs that clients' certificates are from
capath|=|of the listener above it: a folder of these, prepared by `openssl rehash`
crlfile|=|of the listener above it: certificates of clients that are revoked
dhparamfile|=|of the listener above it: the parameters of DHE ciphers
require_certificate|=|of the listener above it: `true`: refuse clients without a certificate of \
these CAs
use_identity_as_username|=|of the listener above it: `true`: the user is the common name in the \
client's certificate; no password is asked for
use_subject_as_username|=|of the listener above it: `true`: the user is the whole subject in it
tls_version|=|of the listener above it: the lowest version, `tlsv1.2` or `tlsv1.3`
ciphers|=|of the listener above it: the ciphers of TLS 1.2, as `openssl ciphers` takes them
ciphers_tls1.3|=|of the listener above it: those of TLS 1.3, with colons between them; with \
CPython 3.15
psk_file|=|of the listener above it, which speaks TLS with [shared keys](tls.md#shared-keys), \
with CPython 3.13: lines `IDENTITY:KEY`, the key in hexadecimal digits
psk_hint|=|of the listener above it: what it tells clients beside that
pid_file|=|where the process id is written
persistence|=|keep what was promised [through a power cut](reliability.md#persistence)
persistence_location|=|the folder for it
persistence_file|mosquitto.db|the file in there
persistence_sync|own|`always`: nothing leaves before it is written and synced; `interval`: \
written now and then
autosave_interval|=|seconds until changes that may wait are written, too; 0: only at the end \
and by SIGUSR1
limit|own|`limit NAME NUMBER`: a capacity of `Limits`
include_dir|=|a folder; reads its files `NAME.conf` in the order of their names, each from \
above its first listener
qos2_delivery|own|`receive`: forward a QoS 2 message at its PUBLISH; `release`: at its PUBREL
record|own|`record FILTER`: what is [recorded](record.md); several add up
record_location|own|the folder for it
record_segment_size|own|bytes of a segment, a multiple of 256; on a computer 256 times as much
record_budget|own|bytes of all segments; on a computer 256 times as much
record_full|own|drop the oldest segment, or `stop` recording
record_flush_interval|own|seconds that a record waits in RAM at most
record_events|own|also record what happens to clients, tables and heap
remote_admin|own|let clients fetch what was recorded, and set the time: all, or those that an \
`acl_file` allows it
per_listener_settings|=|`true`: `allow_anonymous`, `password_file`, `acl_file`, `auto_id_prefix` \
and `allow_zero_length_clientid` are those of the listener above them, see \
[listeners](#each-listener). Before all of these
allow_anonymous|=|`true`: let in clients without a user name; `false`: only clients that \
[log in](#who-may-connect). The default is `false` if there is a `listener`, or a `--host` other \
than loopback
listener_allow_anonymous|=|the same, of the listener above it
allow_zero_length_clientid|=|make up a client id for a client that sends none
allow_control_characters|own|take control characters (U+0001 to U+001F, U+007F to U+009F) and \
noncharacters (such as U+FFFE) in topics, filters, client ids and other texts; else they are \
malformed, as in mosquitto, whose clients leave when they get one. A start without it drops \
messages with such topics from the journal, and says how many
password_file|=|users with passwords, see [who may connect](#who-may-connect). A reload reads the \
file again
login_delay_max|own|seconds that a user must wait at most after wrong passwords; 0: no \
delays at all
use_username_as_clientid|=|the user name is the client id; clients without a user name are \
refused; below a `listener`, of that one
clientid_prefixes|=|refuse a client whose id does not begin with this
auto_id_prefix|=|prefix of such a client id
listener_auto_id_prefix|=|the same, of the listener above it
mqtt31_client_id_max|own|longest client id of MQTT 3.1; its own rule is 23
max_keepalive|0|seconds; a client that asks for a longer keep-alive, or for none, is refused
connect_timeout|own|seconds from the connection to its CONNECT
packet_timeout|own|seconds that a packet may stay incomplete; for a longer packet, for each \
2,000 bytes. While another client waits for the reassembly buffer, the sender must bring 2,000 \
bytes in 2 s or is disconnected
max_packet_size|2000000|bytes of a whole packet; a client that sends a larger one is \
disconnected; on a computer it raises `limit max_packet`
message_size_limit|0|bytes of a payload; a larger message is acknowledged and dropped, counted \
in `publish/messages/dropped`, and the log warns
max_qos|=|highest QoS that is granted, and that clients may publish; below a `listener`, of \
that one
retain_available|=|`false`: a client that publishes a retained message is disconnected
max_inflight_messages|20|messages sent to one client and not yet acknowledged, at most `limit \
deliveries`; `table` is `limit inflight`, with `mqtt_versions 3` at most 20; also announced to \
clients of MQTT 5.0 as Receive Maximum, if `limit received` is not less (a reload raises that, \
and only a restart lowers it; the log says so)
max_inflight_bytes|=|bytes of their payloads and properties: no further one is sent to a client \
before fewer are in flight; 0: no bound
max_queued_messages|1000|messages waiting for one client, at most `limit deliveries`; `table` is \
`limit queued`
max_queued_bytes|=|bytes of their payloads and properties: a message is dropped if so many wait \
already; 0: no bound
max_session_share|own|quota of one session: percent of `limit deliveries`, and of those \
`messages` and `message_bytes` that no retained message uses
max_offline_share|own|once this percentage of them is in use, clients that are not connected \
get nothing more; each connected client gets an equal part of the rest, or one message
queue_qos0_messages|=|queue QoS 0 messages for sessions that are offline
upgrade_outgoing_qos|=|deliver at the subscription's QoS even if the message was published at a \
lower one
allow_duplicate_messages|true|deliver once for each overlapping subscription
mqtt_versions|own|highest version served; `3`: no code and no RAM for MQTT 5.0
max_topic_alias|10|highest topic alias that a client may use; at most `limit aliases`; below a \
`listener`, of that one
max_topic_alias_broker|10|highest topic alias that the broker uses, at \
QoS 0 and 1 only: at QoS 2 some clients have lost it when PUBREL comes; at most `limit aliases`; \
below a `listener`, of that one
persistent_client_expiration|never|seconds, or with `h`, `d`, `w`, `m` or `y`, that a session \
outlives its connection at most; 0: as the client asked
response_information|own|sent to MQTT 5.0 clients that ask for it
server_reference|own|another server, sent to clients that are refused because a table is full
acl_file|=|who may read and write which topics, see [access lists](#access-lists); a reload reads \
the file again
retry_interval|own|seconds until an unacknowledged packet is sent again; 0: only after a \
reconnect
set_tcp_nodelay|false|`false`: TCP delays a small packet until the previous one is acknowledged
sys_interval|=|seconds between two updates of `$SYS`; 0: no `$SYS`
log_type|=|also subscribe, unsubscribe, debug, all, none; several add up
log_dest|=|also stdout, none, `file PATH`, `topic` ([messages](operate.md#the-log) below \
`$SYS/broker/log/`), with CPython `syslog`; several add up
log_facility|=|of `log_dest syslog`: `0` to `7` for `local0` to `local7`
when_full|own|`when_full TABLE POLICY`, see [the table](../lib/DESIGN.md#what-is-full) and \
[persistent sessions](#persistent-sessions)
"""
_LOG_TYPES = ("error", "warning", "notice", "information")
_TABLE = ("size", "most")  # kinds whose 0 means as many as the table has
# what it means if there is none
_UNSET = {
    "log_facility": "daemon",
    "max_inflight_bytes": "0",
    "max_queued_bytes": "0",
    "tls_version": "tlsv1.2",
}
_LINK = re.compile(r"\[([^]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Key:
    """One key. `text` is Markdown."""

    name: str
    status: str  # served, alias, bridge, ignored, refused
    text: str
    ours: str = ""  # the defaults
    mosquittos: str = ""
    reloads: bool = False
    accepted: str = ""  # a value with which a key that is not served is accepted

    @property
    def plain(self) -> str:
        """The text without links and quotes."""
        return _LINK.sub(r"\1", self.text).replace("`", "")


def served() -> Iterator[Key]:
    """The keys that the broker serves, in the order of the documentation."""
    kinds = {row[0]: row[1:] for row in rows(FIELDS)}
    for line in SERVED.splitlines():
        name, mosquittos, text = line.split("|")
        when, kind, *_ = kinds[name]
        ours = _default(name, kind)
        theirs = {"=": ours, "own": "not there"}.get(mosquittos, mosquittos)
        yield Key(name, "served", text, ours, theirs, when == "live")


def others() -> Iterator[Key]:
    """The other keys of mosquitto, and other spellings."""
    for status, names, text in other_keys.rows():
        for name in names.split():
            name, _, accepted = name.partition("=")
            told = f"another spelling of `{text}`" if status == "alias" else text
            told += ", see [bridges](bridge.md)" if status == "bridge" else ""
            yield Key(name, status, told, accepted=accepted)


_ABSENT = {"allow_control_characters": False}  # defaults of settings that control.py asks for


def _default(name: str, kind: str) -> str:
    more = {**journal.DEFAULTS, **recorder.DEFAULTS, **login.DEFAULTS, **_ABSENT}
    value: Any = getattr(Settings, name, more.get(name))
    if name in _UNSET:
        return _UNSET[name]
    if kind in _TABLE and not value:
        return "table"
    if kind == "flag_":
        return "false"
    if kind == "types":
        return " ".join(word for bit, word in enumerate(_LOG_TYPES) if value >> bit & 1)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return value.decode()
    return "" if value is None else value[0] if isinstance(value, tuple) else str(value)

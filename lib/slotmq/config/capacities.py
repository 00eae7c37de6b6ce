# capacities.py - what each limit means, its default and its bounds, and how limits depend on one
# another. Loaded on demand by config/limits.py; owns nothing; allocates at the start only.
#
# The defaults are those of a Pico W on stock firmware. FIELDS is one text, because tuples of
# strings take four times the heap. A line has the name, the default, the least and the most.
#
#   connections      clients connected at a time; there is one slot more, in which one
#                    client too many is refused by CONNACK, or takes over its own session
#   sessions         sessions, connected or not
#   subscriptions    of all sessions
#   nodes            levels of all topic filters; a level that filters have in common counts once
#   name_bytes       the text of the nodes, in blocks of 16 bytes
#   levels           levels of one topic filter
#   topic_bytes      longest topic name or filter
#   client_id_bytes  longest client id
#   retained         retained messages
#   retained_name_bytes  their topic names, in blocks of 16 bytes
#   messages         stored application messages: queued, in flight, retained, wills
#   message_bytes    their topics and payloads
#   message_block    size of the blocks into which message_bytes are divided
#   deliveries       queued and in-flight messages, one for each receiver
#   inflight         deliveries sent to one client and not yet acknowledged
#   queued           deliveries that wait for one client
#   received         QoS 2 packet ids of one client between PUBLISH and PUBREL; paho
#                    sends 20 at once, and a full list closes the connection
#   max_packet       largest control packet, bytes; a larger max_packet_size raises that of a
#                    computer (2 MB) where no line sets it
#   tx_bytes         outgoing buffer of a connection
#   tcp_bytes        what all connections may use of lwIP's memory, on an RP2040 or RP2350:
#                    MEM_SIZE less 1,000 for other uses (platform/lwip.py); 0: no bound
#   rx_bytes         receive buffer, shared by all connections
#   tail_bytes       buffer of each connection for the beginning of an incomplete packet
#   reassembly       buffers of max_packet for incomplete packets that are longer than that
#   routes           topics whose receivers are cached, a power of two
#   route_topic_bytes  longest topic that is cached
#   route_entries    receivers of all cached topics
#   shares           groups of shared subscriptions
#   aliases          topic aliases of a connection, in each direction
#   users            users of password_file, and names that sessions belong to, with acl_file;
#                    without these files they take no heap
#   acl_rules        rules of the acl_file
#   acl_bytes        their filters
#   tls_connections  connections over TLS, on MicroPython with a small heap and on boards, where
#                    each takes some 24 KB; elsewhere nothing bounds them
#   bridges          connections to other brokers; each has a slot of connections and a session
#   bridge_topics    `topic` lines of all bridges; without a bridge neither takes heap
from slotmq.platform import ondemand

FIELDS = """\
connections 4 1 1023
sessions 8 1 8191
subscriptions 48 1 65000
nodes 80 1 65000
name_bytes 1152 64 1048560
levels 16 2 255
topic_bytes 256 32 65535
client_id_bytes 64 23 65535
retained 32 0 65000
retained_name_bytes 1024 0 1048560
messages 64 1 65000
message_bytes 9856 256 67108864
message_block 64 16 4096
deliveries 80 1 65000
inflight 16 1 65000
queued 24 1 65000
received 32 32 65000
max_packet 2048 128 268435460
tx_bytes 640 64 1048576
tcp_bytes 7000 0 1048576
rx_bytes 640 64 1048576
tail_bytes 64 16 65535
reassembly 2 1 1023
routes 16 1 32768
route_topic_bytes 32 8 1024
route_entries 48 8 65000
shares 4 0 32767
aliases 1 0 65535
users 16 1 32767
acl_rules 24 0 65000
acl_bytes 640 0 16777216
tls_connections 0 0 1023
bridges 2 0 1023
bridge_topics 16 0 65000
"""


def fields():
    """FIELDS as lists: name, default, least, most."""
    rows = []
    for line in FIELDS.split("\n")[:-1]:
        words = line.split()
        rows.append([words[0]] + [int(word) for word in words[1:]])
    return rows


def fill(limits, values):
    """Set every limit, to its default where `values` has none; ValueError names the wrong one."""
    for name, default, least, most in fields():
        value = values.pop(name, default)
        if not isinstance(value, int):
            raise TypeError("%s: expected int, not %r" % (name, value))
        if not least <= value <= most:
            raise ValueError("%s: %s to %s, not %s" % (name, least, most, value))
        setattr(limits, name, value)
    for name in values:
        near = ondemand.take("config.other_keys", 0).suggestion(name, [row[0] for row in fields()])
        raise ValueError("no such limit: " + name + near)
    check(limits)


def values(limits):
    """All limits by name."""
    return {field[0]: getattr(limits, field[0]) for field in fields()}


def check(limits):
    """Raise ValueError where limits contradict each other; its text names what may be changed."""
    _at_least(limits, "sessions", "connections", limits.connections)
    _at_least(limits, "route_entries", "sessions", limits.sessions)
    _at_least(limits, "max_packet", "topic_bytes + 8", limits.topic_bytes + 8)
    _at_least(limits, "deliveries", "inflight", limits.inflight)
    block = limits.message_block
    blocks = limits.message_bytes // block
    if blocks * block < min(limits.max_packet, 1 << 20):  # a larger message may find no space
        text = "message_bytes: at least max_packet (%d) in full blocks of message_block (%d)"
        raise ValueError(text % (limits.max_packet, block))
    _fits(blocks, "raise message_block or lower message_bytes")
    each = (min(limits.topic_bytes, 1024) + block - 1) // block
    aliases = (limits.connections + 1) * limits.aliases
    _fits(aliases * each, "lower aliases or connections or topic_bytes or raise message_block")
    ids = (limits.client_id_bytes + 15) // 16 * limits.sessions
    _fits(ids, "lower client_id_bytes or sessions")


def _fits(blocks, text):
    # A store numbers its blocks in 16 bits, and 0xFFFF means none.
    if blocks > 65535:
        raise ValueError("%s: %d blocks, of at most 65535" % (text, blocks))


def _at_least(limits, name, why, least):
    if getattr(limits, name) < least:
        raise ValueError("%s: at least %d, the value of %s" % (name, least, why))

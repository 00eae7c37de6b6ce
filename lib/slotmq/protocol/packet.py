# packet.py - numbers that many files use: first bytes, the fields of the packet record, and the
# results of handlers.
#
# MicroPython inlines a const() only within its own file, and only if its name begins with an
# underscore. So each file repeats the few numbers that it uses, and `make lint` compares each copy
# with this file (dev/tidy). No module imports it, and no board gets it. Allocates nothing.
#
# The packet record (new_packet() of fast/) is a flat array of ints that next_packet() fills for
# each packet. Its offsets are those of the buffer that was scanned. They are valid until the
# handler returns: a handler may store slots, never offsets.
from slotmq.platform.runtime import const

# First bytes of what the broker sends: type << 4, and flags [MQTT 3.1.1, 2.2]. (What it receives
# is handled by its type: HANDLERS of protocol/dispatch.py.)
_CONNACK = const(0x20)
_PUBLISH = const(0x30)  # DUP, QoS and RETAIN are added
_PUBACK = const(0x40)
_PUBREC = const(0x50)
_PUBREL = const(0x62)
_PUBCOMP = const(0x70)
_SUBACK = const(0x90)
_UNSUBACK = const(0xB0)

# Fields of the packet record
_TYPE = const(0)  # 1..14 [2.2.1]
_FLAGS = const(1)  # lower four bits of the first byte
_START = const(2)  # offset of the first byte
_BODY = const(3)  # offset of the variable header
_END = const(4)  # offset past the last byte
_TOTAL = const(5)  # bytes of the whole packet; 0 while its length is not known
_PACKET_ID = const(6)  # PUBLISH QoS 1/2 and the acknowledgements
_TOPIC = const(7)  # PUBLISH: offset, length in bytes
_TOPIC_LEN = const(8)
_PAYLOAD = const(9)  # PUBLISH: offset; ends at _END
_PACKET_MAX = const(10)  # set by control.py: the largest _TOTAL that is accepted
_FAST_MAX = const(11)  # the same for the fast path: also at most message_size_limit

# Of MQTT 5.0
_EXTRA = const(8)  # in the flags of a message: it has properties, or expires
_LONGEST = const(50000000)  # seconds; a longer time never ends

# Results of next_packet beside a length > 0
_NEED_MORE = const(0)
_BAD_PACKET = const(-1)
_TOO_LARGE = const(-2)

# Results of a handler: why the connection ends; 0: it does not. status/log_connections.py has the
# texts. In version 5 a reason code from 0x80 on is a result, too.
_OK = const(0)
_LEFT = const(1)  # DISCONNECT came
_MALFORMED = const(2)
_PROTOCOL = const(3)  # well-formed, but not now or not so
_TOO_BIG = const(4)
_REFUSED = const(5)  # CONNACK with a return code went out
_POLICY_DISCONNECT = const(6)  # a table is full, and its policy is to disconnect
_TAKEN_OVER = const(7)
_TIMED_OUT = const(8)  # keep-alive, no CONNECT, or a half packet
_LOST = const(9)  # the stream ended or failed
_STOPPING = const(10)
_LEFT_WITH_WILL = const(11)  # DISCONNECT of version 5 with 0x04
_STALLED = const(12)  # it does not read: platform/lwip.py
_WAITS = const(14)  # it does not end: its CONNECT waits, see access/users.py

NONE = const(0xFFFF)  # no slot, in every 16-bit column

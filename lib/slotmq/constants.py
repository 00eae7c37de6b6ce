# constants.py - the numbers that several files use, each under one name; one that a single file
# uses stands there, with an underscore. Owns nothing, allocates nothing: tools/pack puts the
# numbers in, so a board never loads this file. `a, b, c = range(3)` numbers positions.

NONE = 0xFFFF  # no slot, in every 16-bit column
NEVER = ALL_BITS = 0x3FFFFFFF  # the largest small integer of every port; a time that never comes

# Packets --------------------------------------------------------------------------------------

# Types [MQTT 3.1.1, 2.2.1], and the first byte of what the broker sends: type << 4, and flags
CONNECT_TYPE, CONNACK_TYPE, PUBLISH_TYPE, PUBACK_TYPE, PUBREC_TYPE, PUBREL_TYPE = range(1, 7)
SUBSCRIBE_TYPE, SUBACK_TYPE, UNSUBSCRIBE_TYPE, UNSUBACK_TYPE = range(8, 12)
PINGRESP_TYPE, DISCONNECT_TYPE, AUTH_TYPE = range(13, 16)
OF_WILL = 16  # index of the handler for wills, after those of the packet types
CONNACK = 0x20
PUBLISH = 0x30  # DUP, QoS and RETAIN are added
PUBACK = 0x40
PUBREC = 0x50
PUBREL = 0x62
PUBCOMP = 0x70
SUBACK = 0x90
UNSUBACK = 0xB0
AUTH = 0xF0
WITH_2 = 0x540  # bits of the types whose flags are 2: PUBREL, SUBSCRIBE, UNSUBSCRIBE
DUP = 8  # in the flags of PUBLISH
CLEAN, WILL, RETAIN_FLAG, PASSWORD, USER_NAME = 2, 4, 32, 64, 128  # of CONNECT [3.1.2.3]

# Fields of the packet record (new_packet() of fast/), a flat array of ints that next_packet()
# fills for each packet. Its offsets are those of the buffer that was scanned. They are valid
# until the handler returns: a handler may store slots, never offsets.
TYPE = 0  # 1..14 [2.2.1]
FLAGS = 1  # lower four bits of the first byte
START = 2  # offset of the first byte
BODY = 3  # offset of the variable header
END = 4  # offset past the last byte
TOTAL = 5  # bytes of the whole packet; 0 while its length is not known
PACKET_ID = 6  # PUBLISH QoS 1/2 and the acknowledgements
TOPIC, TOPIC_LEN = 7, 8  # PUBLISH: offset, length in bytes
PAYLOAD = 9  # PUBLISH: offset; ends at END
PACKET_MAX = 10  # set by control.py: the largest TOTAL that is accepted
FAST_MAX = 11  # the same for the fast path: also at most message_size_limit

# Columns of properties.values of version 5; values[column + MORE]: the length of a text, the
# offset of a number
RESPONSE, IDENTIFIER, SESSION_EXPIRY, METHOD, DATA, MORE = 4, 6, 7, 8, 9, 19
NO_LOCAL, RAP = 4, 8  # subscription options
MIDDLE = 11  # bytes of a PUBLISH: packet id, length of the properties, expiry

# Results --------------------------------------------------------------------------------------

# Of a handler: why the connection ends; 0: it does not. status/log_connections.py has the
# texts. In version 5 a reason code from 0x80 on is a result, too.
OK = 0
LEFT = 1  # DISCONNECT came
MALFORMED = 2
PROTOCOL = 3  # well-formed, but not now or not so
TOO_BIG = 4
REFUSED = 5  # CONNACK with a return code went out
POLICY_DISCONNECT = 6  # a table is full, and its policy is to disconnect
TAKEN_OVER = 7
TIMED_OUT = 8  # keep-alive, no CONNECT, or a half packet
LOST = 9  # the stream ended or failed
STOPPING = 10
LEFT_WITH_WILL = 11  # DISCONNECT of version 5 with 0x04
STALLED = 12  # it does not read: platform/lwip.py
WAITS = 14  # it does not end: its CONNECT waits, see access/users.py
ACCEPTED = 15  # the first CONNECT was accepted, for those who count results

# Why a CONNECT is refused: the return code of 3.1.1 [3.2.2.3] << 8, the reason code of 5.0 [2.4]
REFUSE_LEVEL, REFUSE_ID, REFUSE_TOPIC, REFUSE_FULL = 0x0184, 0x0285, 0x0390, 0x0388
REFUSE_BUSY, REFUSE_QUOTA, REFUSE_LOGIN, REFUSE_USER = 0x0389, 0x0397, 0x0486, 0x0587
FAILURE = 0x80  # a return code of SUBACK
# Reason codes [5.0, 2.4]
MALFORMED_PACKET, PROTOCOL_ERROR = 0x81, 0x82
UNAUTHORIZED, BUSY, FILTER_INVALID, TOPIC_INVALID = 0x87, 0x89, 0x8F, 0x90
PACKET_TOO_LARGE, QUOTA, NO_RETAIN, NO_QOS = 0x95, 0x97, 0x9A, 0x9B

# Tables ---------------------------------------------------------------------------------------

# Connections.state, whose transitions are in tables/connections.py
NEW = 1  # waits for CONNECT
CONNECTED = 2
ENDING = 3  # its buffer is flushed once, then the stream is closed
FIVE = 4  # added to NEW, CONNECTED
LINGERING = 5
VERIFYING = 6
IDLE, BLOCKED = 0, 2  # Connections.out: nothing is to be written; the socket said "not now"
# Connections.counts
DIRTY_CONNS, PUBLISHES, LAST_MS, SERVED, EACH_TURN, WHOLE = range(6)
POLLING = -32768  # the value of SERVED until there is an event
# Connections.quota, of a listener: max_connections, its sockets, those that have a session, its
# own settings by name (config/mosquitto_conf.py), which a reload may change
QUOTA_MOST, QUOTA_SOCKETS, QUOTA_CONNECTED, QUOTA_OPTIONS = range(4)
FAST_READ = 3  # Connections.reassembly
# Deliveries.state
QUEUED, SENT_1, SENT_2, RELEASED, FREE = range(5)
# Deliveries.flags and Messages.flags
EXTRA = 8  # of a message: it has properties, or expires
HAS_ROW = 16  # of a message: the journal has its row
CHANGED, BY = 32, 64  # of a delivery
NOT_OWN = 4 | 16  # No Local of a client, of a bridge
# count of Deliveries and Messages; window; pending; ids_high of Sessions
IN_USE, MOST_IN_USE, FIRST_FREE, LAST_FREE, UNSAVED = range(5)
QUOTAS_FROM, MORE_QUEUED, INFLIGHT_BYTES = range(5, 8)  # of Deliveries
MAX_INFLIGHT, MAX_QUEUED, QUOTA_SLOTS, QUOTA_BLOCKS = range(4)
PENDING_COUNT = 0
MOST_IDS, IDS_UNSAVED, ANNOUNCED = range(3)
NOW, LOOK_AT = range(2)  # of broker.clock; when full tables are looked at next
# Arena.state, Routes.state
FREE_BLOCK, FREE_BLOCKS, SIZE = range(3)
GENERATION, MISSED = range(2)
TEXT_BLOCK = 16  # bytes of a block of Names' text
PLAIN, BRIDGE, OTHER = 1, 2, 4  # Subscriptions.kind
# broker.stats
PACKETS_IN, PACKETS_OUT, PUBLISH_IN, PUBLISH_OUT, DROPPED, BYTES_IN, BYTES_OUT = range(7)
LOGGED_REFUSALS, QOS_0, NOTED_QOS_0 = 7, 21, 27
UNDER_WAY = 20  # mosquitto drops more QoS 2 messages, and version 3 has no word for that
CARRY = 100000000  # stats stay below this; carried counts how often they passed it
FOR_THIS_PACKET = 2  # a value of broker.journal_full
PROGRAM, ANONYMOUS, UNKNOWN = range(0xFFFC, 0xFFFF)  # access/owners.py
JOB_CONN, JOB_REST, VERIFIED, JOB_WORK = 0, 2, 3, 5  # of a row of Users.waiting
SALT, STORED = range(2)  # of a user
OWN_SEVERAL = -2  # five.chunked_ident: the sender's own message, with several identifiers
NEAR = 8  # a message's expiry counts at most so many times 2 ** 25 seconds at once
# What a session has reached (delivery/quota.py); CROWDED is added for what others leave
CROWDED, DELIVERIES, MESSAGES, QUEUED_BYTES = 1, 2, 4, 8
AMPLE = 65536  # bytes for messages, from which on QoS 0 is queued
SUBJECT = 2  # a listener's option: the client's user name is its certificate's subject
PLACES = -1  # in the options of a listener: of its lines about TLS and WebSocket
LINE = 20  # of a line's number in its place
MOST_KEPT = 10  # errors, and warnings, that a small heap keeps
CONNECTING = 1  # a bridge's state

# The system, the log ---------------------------------------------------------------------------

ENOENT, EIO, EAGAIN, ENOMEM, EMFILE, ENOSPC, ENOBUFS = 2, 5, 11, 12, 24, 28, 105
IN, OUT = 1, 4  # of poll()
HUP = 16  # the esp32 port reports it only if it was asked for
GONE = 8 | 16 | 32  # errors and ends that poll() reports without being asked
LOCKED, LIFTED, IS_LOCKED, EXCUSED = range(4)  # of platform/heap.py
BACKLOG = 4096  # large: a client that the system turns away tries again only after a second
TCP = 6
PCB = 4  # offset in bytes of the control block's address in a socket object
CLOCK_IS_SET = 1700000000  # an earlier time means that the clock is not set yet
YEAR_2000 = 946684800  # where the clocks of most boards begin
# Tenths of a second
TICK = 2  # between two ticks
SOON = 10
MINUTE = 600
EPOCH = 259200000  # 300 days
LONGEST = 50000000  # seconds; a longer time of MQTT 5.0 never ends
NAP = 5  # ms of a turn while a connection waits for lwIP's memory, which causes no event
TENTH_MS = 100
DOLLAR = 36  # $
KEY = 32  # bytes of SHA-256's digest
USER_BYTES = 128  # of a row of Users
# Kinds of log lines
ERROR, WARNING, NOTICE, INFO, SUBSCRIBE_LOG, UNSUBSCRIBE_LOG, DEBUG = 1, 2, 4, 8, 16, 32, 64
TOPIC_SHOWN, USER_SHOWN = 100, 32  # bytes of a text that a line shows

# Frames of WebSocket ---------------------------------------------------------------------------

# The state of a stream
F_DONE, F_AT, F_HAVE, F_LEFT, F_PHASE, F_KIND, F_OPEN, F_SIZE = range(8)
F_MASK, F_CONTROL = 14, 18
F_CLOSE = 8  # an opcode
CODE_PROTOCOL, CODE_TYPE, CODE_SIZE = 1002, 1003, 1009  # close codes [RFC 6455, 7.4.1]

# Journal, recorder -----------------------------------------------------------------------------

BODY_AT = 8  # where a record's body begins in buf; its type and length stand before
ROW = 4  # in dirty: the journal has a row of the slot
RETRY = 10  # tenths of a second until the next attempt to write; later up to 256 times it
BITS = 30  # of a generation
HEAD_BYTES = 16  # of a generation in a file
PAGE, HEADER, SECOND = 256, 24, 128  # of raw flash; bytes of a header, of which a page has two
# The recorder's state. From REC_LENGTH on it has a record's header, in the order after the CRC.
REC_FILL = 0  # bytes in the buffer
REC_BLOCK = 1  # more than so many are to be written
REC_SIZE = 2  # bytes of the whole buffer
REC_LENGTH = 3  # of the record, its type and its flags
REC_SEQ = 4  # of the next record
REC_TICKS = 5
REC_SPACE = 7  # bytes left in the segment
REC_CLIENT, REC_TOPIC_ID, REC_CRC, REC_OUT = 8, 9, 10, 11
REC_TOPICS, REC_CLIENTS = 13, 14
REC_THIS = 15  # state of ids that the segment has defined
REC_SESSIONS = 16  # of connections
REC_BEGAN = 17  # ticks at the start
REC_SKIP = 18  # bytes before a payload: 1, the length of no properties, for version 5
U32_MOST = 0xFFFFFFFF
UNWANTED = 1  # state of a topic: no filter matches it; from 2 on: the segment that defines it
REC_BEFORE = 20  # bytes of a record before its payload
MOST_BYTES = 65534  # bytes of a record
OF_MESSAGE = 2  # a record's type
FAILED = 3  # why records are lost: the file system

# Columns ---------------------------------------------------------------------------------------

# Positions in the table `o` of *_viper.py, in the order in which fast/columns.py makes it: D_PREV
# is d.prev, a local variable has its name in capitals
(R_MASK, R_TOPIC_BYTES, R_GEN, R_LEN, R_TEXT, R_STATE, C_OUT, C_TX_END, C_TX_LIMIT, C_TX,
 C_DIRTY, C_COUNTS, POOL, S_CONN, D_SESSION, D_MSG, D_PREV, D_NEXT, D_STATE, D_FLAGS, D_COUNT,
 S_HEAD, S_TAIL, S_CURSOR, S_QUEUED, S_INFLIGHT, D_IS_PENDING, D_WINDOW, M_REFS, M_FIRST,
 M_NEXT, M_COUNT, M_TOPIC_LEN, M_PAYLOAD_LEN, M_FLAGS, D_PENDING, S_SCANS, M_ARENA_STATE,
 M_ARENA_NEXT, M_ARENA_DATA, C_SESSION, STATS, CLOCK, PKT, S_IDS, S_ID_COUNT, S_PROGRESS,
 R_FIRST, R_END, C_STATE, C_BUFFERED, C_REASSEMBLY, S_IDS_HIGH, C_LAST_ACTIVITY, ALIGN_AT,
 D_SLOTS, M_SLOTS, S_RECEIVED, S_MOST, LAST, ONE, S_DIRTY, SENDERS, SENDERS_WIDTH, C_LEVEL,
 R_MID, QUEUES) = range(67)

# records.py - the schema of the journal's records: the number of each type; where its body begins
# with fields, their format as in struct, their bytes and, in the comment, their names; what
# follows them stands behind `|`. writer.py and compaction.py write by it, restore_rows.py
# reads by it. `slotmq inspect` has the names from this file, and a test holds
# FORMAT.md to it. Constants only: of a packed board's heap they take nothing.
from slotmq.platform.runtime import const

VERSION = 3  # the newest that is read
LAST_TYPE = 13
HEAD = 1
# version, generation, window, flags
HEAD_LAYOUT = const(">BIHB")
HEAD_SIZE = 8
SESSION = 2
# slot, flags, left, expiry, will, delay, due, since | user, client id
SESSION_LAYOUT = const(">HBiIHIii")
SESSION_SIZE = 25
SESSION_GONE = 3
SUBSCRIPTION = 4
# slot, session, qos, options, identifier, group, length | share, filter
SUBSCRIPTION_LAYOUT = const(">HHBBIHB")
SUBSCRIPTION_SIZE = 13
SUBSCRIPTION_GONE = 5
MESSAGE = 6
# slot, flags, expires, far, high, low | topic, properties, payload
MESSAGE_LAYOUT = const(">HBiBBH")
MESSAGE_SIZE = 11
DELIVERY = 7
# slot, session, message, flags, group, identifier
DELIVERY_LAYOUT = const(">HHHBHi")
DELIVERY_SIZE = 13
DELIVERY_RELEASED = 8
DELIVERY_GONE = 9
RECEIVED = 10
RETAINED_ROW = 11
# slot, message
RETAINED_LAYOUT = const(">HH")
RETAINED_SIZE = 4
RETAINED_GONE = 12
COMMIT = 13
# now
COMMIT_LAYOUT = const(">I")
COMMIT_SIZE = 4

# Flags of a session
IS_CLEAN = 1  # it ends with its connection
WAS_CONNECTED = 2
HAS_WILL = 4
OF_VERSION_5 = 8
OWNED = 16  # its user is known

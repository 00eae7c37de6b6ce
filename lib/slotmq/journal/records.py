# records.py - the schema of the journal's records: the number of each type; where its body begins
# with fields, their format as in struct, their bytes and, in the comment, their names; what
# follows them stands behind `|`. writer.py and rows.py write by it, restore_rows.py and
# restore_messages.py read by it. `slotmq inspect` has the names from this file, and a test holds
# FORMAT.md to it. Constants only: of a packed board's heap they take nothing.
from slotmq.platform.runtime import const

VERSION = const(3)  # the newest that is read
LAST_TYPE = const(13)
HEAD = const(1)
# version, generation, window, flags
HEAD_LAYOUT = const(">BIHB")
HEAD_SIZE = const(8)
SESSION = const(2)
# slot, flags, left, expiry, will, delay, due, since | user, client id
SESSION_LAYOUT = const(">HBiIHIii")
SESSION_SIZE = const(25)
SESSION_GONE = const(3)
SUBSCRIPTION = const(4)
# slot, session, qos, options, identifier, group, length | share, filter
SUBSCRIPTION_LAYOUT = const(">HHBBIHB")
SUBSCRIPTION_SIZE = const(13)
SUBSCRIPTION_GONE = const(5)
MESSAGE = const(6)
# slot, flags, expires, far, high, low | topic, properties, payload
MESSAGE_LAYOUT = const(">HBiBBH")
MESSAGE_SIZE = const(11)
DELIVERY = const(7)
# slot, session, message, flags, group, identifier
DELIVERY_LAYOUT = const(">HHHBHi")
DELIVERY_SIZE = const(13)
DELIVERY_RELEASED = const(8)
DELIVERY_GONE = const(9)
RECEIVED = const(10)
RETAINED_ROW = const(11)
# slot, message
RETAINED_LAYOUT = const(">HH")
RETAINED_SIZE = const(4)
RETAINED_GONE = const(12)
COMMIT = const(13)
# now
COMMIT_LAYOUT = const(">I")
COMMIT_SIZE = const(4)

# Flags of a session
IS_CLEAN = const(1)  # it ends with its connection
WAS_CONNECTED = const(2)
HAS_WILL = const(4)
OF_VERSION_5 = const(8)
OWNED = const(16)  # its user is known

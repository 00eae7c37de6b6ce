# messages.py - application messages, their payloads, topics and filters.
#
# A payload is the message's number, a dot, and bytes of a pattern that depend on the number. So it
# shows which message it is, and whether it is intact. A message with an empty payload (it clears a
# retained message) is identified by its topic.
from slotmq_tools import codec

_PATTERN = bytes(range(256)) * 20

TOPICS = (b"a", b"a/b", b"a/c", b"b", b"a/b/c", b"b/b", b"$v", b"c/c/c/c", b"longer/" * 4)
TOPICS += (b"longest/" * 7,)
FILTERS = (b"a", b"a/b", b"a/+", b"a/#", b"#", b"+", b"+/b", b"a/b/c/#", b"$v", b"b/#", b"x/y/z")
DEEP = b"/".join([b"d"] * 15)
EVERYTHING = (b"#", b"$v")


class Message:
    """A PUBLISH or a will, as its publisher made it."""

    def __init__(self, number, topic, size, qos, retain, sender, props=b"", expiry=None):
        self.number = number
        self.topic = topic
        self.size = size
        self.qos = qos
        self.retain = retain
        self.sender = sender  # client id
        self.props = props  # MQTT 5.0 properties that the broker forwards
        self.expiry = expiry  # seconds, or None
        self.deadline = None  # ms; set when the broker has it
        self.early_ms = 0  # World.early_ms at that time
        self.is_will = False
        self.seq = 0  # its place in the order in which the broker published

    def key(self):
        """What identifies the message: its number, or its topic if the payload is empty."""
        return self.number if self.size else self.topic

    def again(self):
        """Return a copy whose expiry time begins again."""
        made = Message(self.number, self.topic, self.size, self.qos, self.retain, self.sender)
        made.props = self.props
        made.expiry = self.expiry
        return made

    def payload(self):
        return payload(self.number, self.size)

    def __repr__(self):
        what = f"<message {self.number} to {self.topic.decode()}, {self.size} bytes"
        what += f", qos {self.qos}, retain {self.retain}, of {self.sender}"
        return what + (f", expires {self.deadline}>" if self.deadline else ">")


def payload(number, size):
    """Return the payload of a message; it is never shorter than the number and its dot."""
    if not size:
        return b""
    head = b"%d." % number
    start = number * 7 % 256
    return head + _PATTERN[start : start + max(0, size - len(head))]


def least(number):
    return len(b"%d." % number)


def number_of(data):
    """Return the number in a payload; 0 if it is empty, -1 if no client has sent it."""
    if not data:
        return 0
    at = data.find(b".")
    if at < 1 or not data[:at].isdigit():
        return -1
    number = int(data[:at])
    return number if payload(number, len(data)) == data else -1


_matched = {}


def matches(topic_filter, topic):
    key = (topic_filter, topic)
    found = _matched.get(key)
    if found is None:
        found = _matched[key] = codec.matches(topic_filter, topic)
    return found

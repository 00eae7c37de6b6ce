# messages.py - application messages, payloads that tell which message it is, and topics.
#
# A payload is the message's number, a dot, and a stretch of a pattern that depends on the
# number: whoever gets it knows which message it is and whether it is whole. An empty
# payload (it clears a retained message) is known by its topic.
_PATTERN = bytes(range(256)) * 20

TOPICS = (b"a", b"a/b", b"a/c", b"b", b"a/b/c", b"b/b", b"$v", b"c/c/c/c", b"longer/" * 4)
TOPICS += (b"longest/" * 7,)
FILTERS = (b"a", b"a/b", b"a/+", b"a/#", b"#", b"+", b"+/b", b"a/b/c/#", b"$v", b"b/#", b"x/y/z")
DEEP = b"/".join([b"d"] * 15)
EVERYTHING = (b"#", b"$v")


class Message:
    """A PUBLISH or a will, as its sender made it."""

    def __init__(self, number, topic, size, qos, retain, sender, props=b"", expiry=None):
        self.number = number
        self.topic = topic
        self.size = size
        self.qos = qos
        self.retain = retain
        self.sender = sender  # client id
        self.props = props  # of version 5, as they are passed on
        self.expiry = expiry  # seconds, or None
        self.deadline = None  # ms, once the broker has it
        self.early_ms = 0  # how far behind the broker's clock may have been then
        self.is_will = False
        self.seq = 0  # its place in the order in which the broker handled them
        self.turn = 0  # when it was handled

    def key(self):
        """What is told by a payload: the number, or the topic where it is empty."""
        return self.number if self.size else self.topic

    def again(self):
        """The same once more, which lives from now on."""
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
    """The payload of so many bytes; never fewer than the number takes."""
    if not size:
        return b""
    head = b"%d." % number
    start = number * 7 % 256
    return head + _PATTERN[start : start + max(0, size - len(head))]


def least(number):
    return len(b"%d." % number)


def number_of(data):
    """The number in a payload, 0 for an empty one, -1 where it is none of ours."""
    if not data:
        return 0
    at = data.find(b".")
    if at < 1:
        return -1
    number = int(data[:at])
    return number if payload(number, len(data)) == data else -1


_matched = {}


def matches(topic_filter, topic):
    """As chapter 4.7 has it."""
    key = (topic_filter, topic)
    found = _matched.get(key)
    if found is None:
        if topic[:1] == b"$" and topic_filter[:1] in b"+#":
            found = False
        else:
            found = _levels_match(topic_filter.split(b"/"), topic.split(b"/"))
        _matched[key] = found
    return found


def _levels_match(wanted, levels):
    if not wanted or wanted[0] == b"#":
        return bool(wanted) or not levels
    if not levels:
        return False
    return wanted[0] in (b"+", levels[0]) and _levels_match(wanted[1:], levels[1:])

# dns.py - the question for a name's IPv4 address, and what a DNS server answers. wall.py sends
# and receives them and never waits: a port's own getaddrinfo stands still for 7 seconds and
# more where no server answers, and the watchdog bites after 8.
#
# Loaded for a moment, and put away again. Allocates.
_HEADER = 12
_ASKS = b"\1\0\0\1\0\0\0\0\0\0"  # recursion is wanted; one question
_FOR_ADDRESS = b"\0\0\1\0\1"  # the name's end; type A, of the Internet
_IS_ANSWER = 0x80
_POINTER = 0xC0
_LABEL_MAX = 63


def question(name, number):
    """The packet that asks for it; `number` is two bytes. ValueError: that is no name."""
    packet = number + _ASKS
    for label in name.lower().rstrip(".").split("."):
        data = label.encode()
        if not 0 < len(data) <= _LABEL_MAX:
            raise ValueError("no name: %s" % name)
        packet += bytes((len(data),)) + data
    return packet + _FOR_ADDRESS


def answer(packet, asked):
    """The address; "": the server knows none. None: that is no answer to what was asked."""
    end = len(asked)
    if packet[:2] != asked[:2] or packet[_HEADER:end].lower() != asked[_HEADER:]:
        return None
    if not packet[2] & _IS_ANSWER:
        return None
    try:
        return _first_address(packet, end)
    except IndexError:
        return ""  # it was cut off


def _first_address(packet, at):
    # Behind names that this one is only another name for, which stand before it
    for _ in range(packet[6] << 8 | packet[7]):
        at = _behind_name(packet, at)
        size = packet[at + 8] << 8 | packet[at + 9]
        is_address = packet[at : at + 4] == _FOR_ADDRESS[1:] and size == 4
        at += 10
        if is_address:
            return "%d.%d.%d.%d" % (packet[at], packet[at + 1], packet[at + 2], packet[at + 3])
        at += size
    return ""


def _behind_name(packet, at):
    # It is not followed to where a pointer leads, so nothing goes in circles.
    while True:
        size = packet[at]
        if size >= _POINTER:
            return at + 2
        if size > _LABEL_MAX:
            raise IndexError
        at += 1 + size
        if not size:
            return at

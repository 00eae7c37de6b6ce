# dns.py - a DNS query for a name's IPv4 address, and the parser of the answer (RFC 1035). The
# firmware's clock and dial_micropython.py send and receive them without blocking: on a board
# getaddrinfo blocks for 7 seconds and more if no server answers, and the watchdog resets after 8.
#
# Loaded on demand and unloaded again; owns nothing. Allocates.
import os
import socket


_DNS_HEADER = 12
_ASKS = b"\1\0\0\1\0\0\0\0\0\0"  # RD is set; one question
_FOR_ADDRESS = b"\0\0\1\0\1"  # the end of the name; type A, class IN
_IS_ANSWER = 0x80
_POINTER = 0xC0
_LABEL_MAX = 63
_PORT = 53
_ANSWER_MAX = 512  # bytes of an answer
_ASKED_AGAIN = 20  # tenths of a second until it is asked again
_ASKED_MAX = 3


def find(asked, name, server, now):
    """Ask a name server, or look for its answer; -> the address as text, or None: call it again.

    asked: {name: [socket, query, when it was sent last, how often]}, which the caller keeps;
    now: tenths of a second. OSError, ValueError: there is none."""
    try:
        one = asked.get(name)
        if not one:
            query = question(name, os.urandom(2))
            one = asked[name] = [_open(server), query, now - _ASKED_AGAIN, 0]
        try:
            found = answer(one[0].recv(_ANSWER_MAX), one[1])
        except OSError:
            found = None  # not yet
        if found:
            _close(asked, name)
            return found
        waits = 0 <= now - one[2] < _ASKED_AGAIN  # below 0: the clock's zero has moved since
        if found == "" or one[3] == _ASKED_MAX and not waits:
            raise OSError("no such host" if found == "" else "the name server does not answer")
        if not waits:
            one[0].send(one[1])
            one[2] = now
            one[3] += 1
    except (OSError, ValueError):
        _close(asked, name)
        raise
    return None


def _open(server):
    if not server.strip("0."):
        raise OSError("the network has no name server")
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setblocking(False)
    sock.connect(socket.getaddrinfo(server, _PORT)[0][-1])  # drops packets from others
    return sock


def _close(asked, name):
    one = asked.pop(name, None)
    if one:
        one[0].close()


def question(name, number):
    """The query; `number` is its id, two bytes. ValueError: no valid name."""
    packet = number + _ASKS
    for label in name.lower().rstrip(".").split("."):
        data = label.encode()
        if not 0 < len(data) <= _LABEL_MAX:
            raise ValueError("no name: %s" % name)
        packet += bytes((len(data),)) + data
    return packet + _FOR_ADDRESS


def answer(packet, asked):
    """The address as text; "": the name has none. None: no answer to the query `asked`."""
    end = len(asked)
    if packet[:2] != asked[:2] or packet[_DNS_HEADER:end].lower() != asked[_DNS_HEADER:]:
        return None
    if not packet[2] & _IS_ANSWER:
        return None
    try:
        return _first_address(packet, end)
    except IndexError:
        return ""  # the packet is truncated


def _first_address(packet, at):
    # CNAME records, which come first, are skipped.
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
    # Pointers are skipped and not followed, so a loop of pointers is harmless.
    while True:
        size = packet[at]
        if size >= _POINTER:
            return at + 2
        if size > _LABEL_MAX:
            raise IndexError
        at += 1 + size
        if not size:
            return at

# log_bridges.py - what the log says of a bridge's connection: which bridge, which address, why it
# is not there or has ended. Loaded on demand; owns nothing; allocates the line.
from slotmq.constants import (BLOCKED, CONNECTING, LEFT, LOST, MALFORMED, NOTICE, PROTOCOL,
    REFUSED, TIMED_OUT, WARNING)

_NOT_AVAILABLE = 99
_OF_OTHERS = (0, 11, 105)  # numbers that end no connection: of another one, before
# One text takes a third of the heap that a table would. The numbers are those of Linux and lwIP,
# then those of an ESP32.
_ERRORS = """\
-2 no such host
-3 no name server
12 no memory
32 closed there
101 no network
103 aborted
104 reset there
107 closed there
110 no answer
111 refused
113 no way there
116 no answer
118 no way there
"""
# Beside what status/log_connections.py says of these results
_RESULTS = {LEFT: "it leaves: DISCONNECT", 6: "no space: limit received, messages"}
_ADDRINFO = "[addrinfo error "

def _error(number):
    """The text of an error of the socket."""
    return _known(number) or "errno %d" % number


def _known(number):
    for line in _ERRORS.split("\n"):
        if line.startswith("%s " % number):
            return line.partition(" ")[2]
    return None


def reason_of(exception, bind):
    """The text of an exception of Bridge.reach(), which connects from the address `bind`."""
    about = exception.args or ("",)
    number = about[0]
    if str(number).startswith(_ADDRINFO):  # MicroPython on a computer
        number = number[len(_ADDRINFO) : -1]
    if bind and number == _NOT_AVAILABLE:
        return "bridge_bind_address %s is not of this computer" % bind
    return _known(number) or str(about[-1])


def return_code(one, code):
    """Why CONNACK of version 3 refuses the bridge."""
    text = "return code %d" % code
    if code < 6:
        text += ", " + one.module("status.log_reasons").words(code)
    return text


def say_ended(one, why, number):
    """The connection ends, for this result; number: the socket's error, or 0."""
    if why == REFUSED:  # which has been logged
        return
    is_new = one.state == CONNECTING
    if why == LEFT and one.is_soon:  # this side leaves
        one.log(NOTICE, "leaves %s" % one.where())
        return
    text = one.why or _text(one, why, number, is_new)
    what = "cannot connect to %s (%s)" if is_new else "lost %s (%s)"
    one.log(WARNING, what % (one.where(), text))


def _text(one, why, number, is_new):
    broker = one.broker
    conns = broker.conns
    if why == LOST:
        text = _error(number) if number not in _OF_OTHERS else "closed there"
        if is_new and text == "closed there":
            text += " before CONNACK"
        return text
    if why == TIMED_OUT and is_new:
        what = "answer" if conns.out[one.conn] == BLOCKED else "CONNACK"
        return "no %s in %d s" % (what, broker.settings.connect_timeout)
    if why == TIMED_OUT:
        silent = broker.now - conns.last_activity[one.conn]
        return "nothing has come for %d s: keepalive_interval" % (silent // 10)
    if is_new and why in (MALFORMED, PROTOCOL):
        return "its answer is no CONNACK"
    words = one.module("status.log_connections")
    return _RESULTS[why] if why in _RESULTS else words.result(broker, why)

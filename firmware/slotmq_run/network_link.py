# network_link.py - brings the network up and keeps it up. The kinds of links are in station.py,
# access.py and wired.py, of which a board loads one.
#
# Each link has start(now), step(now) -> changed?, up, and state(), the text for the log. step() is
# called several times a second and never blocks. A failed attempt is repeated after a pause, which
# doubles up to half a minute. The broker is not involved: while the link is down, its listener and
# sessions stay, and clients reconnect to them.
#
# The constants of `network` differ between ports, so only isconnected() decides; status() is used
# for texts only.
try:
    import network
except ImportError:
    network = None  # type: ignore[assignment]
try:
    from micropython import const
except ImportError:  # not on MicroPython
    const = int  # type: ignore[assignment, unused-ignore]

_JOIN_MS = const(20000)  # longest time of an attempt, DHCP included
_PAUSE_MS = const(1000)
_LONGEST_PAUSE_MS = const(30000)
_MASK = const(0x3FFFFFFF)
made: list = []  # the link of the last make()


def make(config):
    """The link that network.json describes. ValueError, KeyError: it cannot be used."""
    made[:] = (_make(config["link"], config),)
    return made[0]


def _make(kind, config):
    if kind == "host":
        return Host()
    if network is None:
        raise ValueError("link %s: this Python has no module network" % kind)
    if config.get("hostname"):
        network.hostname(config["hostname"])  # must precede the interface
    if config.get("country"):
        network.country(config["country"])  # a CYW43 reads it when it is first activated
    if kind == "station":
        from slotmq_run import station

        return station.Station(config)
    if kind == "access_point":
        from slotmq_run import access

        return access.AccessPoint(config)
    if kind in ("ethernet", "ppp"):
        from slotmq_run import wired

        return wired.make(kind, config)
    raise ValueError("link: expected station, access_point, ethernet, ppp or host")


def made_by(name):
    """The class of `network`. ValueError: this firmware does not have it."""
    kind = getattr(network, name, None)
    if kind is None:
        raise ValueError("this board's MicroPython has no network.%s" % name)
    return kind


class Host:
    """On a computer the system has brought the network up."""

    up = True

    def start(self, now):
        pass

    def step(self, now):
        return False

    def state(self):
        return "network: the system's"

    def resolver(self):
        """None: the system resolves names."""


class Link:
    """The base of all links of a board; a subclass makes the interface and implements begin()."""

    name = ""

    def __init__(self, config):
        # Address, mask, gateway, DNS; None: DHCP. Set after activation, since lwIP starts DHCP
        # with the interface, and stops it when these are set.
        self.fixed = config.get("address")
        self.up = False
        self.why = ""
        self._reported_why = ""  # the last reason that step() reported as new
        self._since = 0
        self._pause = _PAUSE_MS
        self._trying = False

    def start(self, now):
        """Start an attempt at the time `now`, in ms."""
        self._since = now
        self._trying = True
        try:
            self.begin()
        except Exception as error:  # an ESP32 without memory raises RuntimeError
            self._trying = False
            self.why = "error %s" % error

    def step(self, now):
        """Check the link; -> has it come up, been lost, or failed for a new reason?"""
        waited = (now - self._since) & _MASK
        was = self.up
        self.up = self._is_up()
        if self.up:
            self._pause = _PAUSE_MS
            self._trying = False
            return not was
        if was:  # lost: the port may reconnect by itself within the time of an attempt
            self.why = self._reported_why = "lost"
            self._since = now
            self._trying = True
            return True
        if not self._trying:
            if waited >= self._pause:
                self._pause = min(_LONGEST_PAUSE_MS, 2 * self._pause)
                self.start(now)
            return self._is_new()  # start() may have failed with an exception
        why = self._failure()
        if not why and waited < _JOIN_MS:
            return False
        self._trying = False
        self._since = now
        self.why = why or "no answer"
        return self._is_new()

    def _is_new(self):
        # Does the reason differ from the last reported one?
        was = self._reported_why
        self._reported_why = self.why
        return was != self.why

    def state(self):
        """The state, as one line for the log."""
        if self.up:
            return "%s: up, %s" % (self.name, self.interface().ifconfig()[0])
        return "%s: %s; it is tried again" % (self.name, self.why)

    def resolver(self):
        """The address of the network's DNS server."""
        return self.interface().ifconfig()[3]

    # For subclasses

    def begin(self):
        """Start to connect, without blocking. An exception is a failed attempt."""

    def interface(self):
        """The interface of `network`."""

    def _is_up(self):
        try:
            return self.interface().isconnected()
        except OSError:
            return False

    def _failure(self):
        return ""

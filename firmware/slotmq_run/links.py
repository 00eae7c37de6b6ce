# links.py - ways onto a network, and how each is kept up: what they have in common. Kinds are
# in station.py, access.py and wired.py, of which a board loads one.
#
# Every link has start(now), step(now) -> has it changed?, up, told(). step() is called
# some times a second and never waits: what fails is tried again, after a pause that
# doubles up to half a minute. The broker knows nothing of it: its listener stays, sessions
# outlive the loss, and clients come back to them.
# Constants of `network` differ from port to port, so only isconnected() is relied on;
# status() is for the text.
try:
    import network
except ImportError:
    network = None  # type: ignore[assignment]

_JOIN_MS = 20000  # how long one attempt may take, with DHCP
_PAUSE_MS = 1000
_LONGEST_PAUSE_MS = 30000
_MASK = 0x3FFFFFFF
made: list = []  # the link that make() has made last


def make(config):
    """The link that network.json names; ValueError, KeyError: it cannot be used."""
    made[:] = (_make(config["link"], config),)
    return made[0]


def _make(kind, config):
    if kind == "host":
        return Host()
    if network is None:
        raise ValueError("link %s: this Python has no module network" % kind)
    if config.get("hostname"):
        network.hostname(config["hostname"])  # before there is an interface
    if config.get("country"):
        network.country(config["country"])  # a CYW43 takes it when it is first active
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
    """What makes an interface of this kind; not every image has it."""
    kind = getattr(network, name, None)
    if kind is None:
        raise ValueError("this board's MicroPython has no network.%s" % name)
    return kind


class Host:
    """The network is there already."""

    up = True

    def start(self, now):
        pass

    def step(self, now):
        return False

    def told(self):
        return "network: the system's"

    def resolver(self):
        """None: the system looks names up itself."""


class Link:
    """What all links of a board have; a kind makes its nic and knows how to begin()."""

    name = ""

    def __init__(self, config):
        # Address, mask, gateway, DNS; none: DHCP's. For an active interface, since on lwIP DHCP
        # begins with that, and ends when it is given these.
        self.fixed = config.get("address")
        self.up = False
        self.why = ""
        self._told_why = ""  # what step() has last said is new
        self._since = 0
        self._pause = _PAUSE_MS
        self._trying = False

    def start(self, now):
        """Begin an attempt."""
        self._since = now
        self._trying = True
        try:
            self.begin()
        except Exception as error:  # an ESP32 without memory for it raises RuntimeError
            self._trying = False
            self.why = "error %s" % error

    def step(self, now):
        """Look after it; True if it came up, was lost, or failed otherwise than before."""
        waited = (now - self._since) & _MASK
        was = self.up
        self.up = self._is_up()
        if self.up:
            self._pause = _PAUSE_MS
            self._trying = False
            return not was
        if was:  # lost: the port may mend it itself, for as long as an attempt takes
            self.why = self._told_why = "lost"
            self._since = now
            self._trying = True
            return True
        if not self._trying:
            if waited >= self._pause:
                self._pause = min(_LONGEST_PAUSE_MS, 2 * self._pause)
                self.start(now)
            return self._is_new()  # a driver may have raised, in start() too
        why = self._failure()
        if not why and waited < _JOIN_MS:
            return False
        self._trying = False
        self._since = now
        self.why = why or "no answer"
        return self._is_new()

    def _is_new(self):
        # Why it is not up: is that otherwise than what was told?
        was = self._told_why
        self._told_why = self.why
        return was != self.why

    def told(self):
        """One line for people."""
        if self.up:
            return "%s: up, %s" % (self.name, self.interface().ifconfig()[0])
        return "%s: %s; it is tried again" % (self.name, self.why)

    def resolver(self):
        """The address of the network's DNS server."""
        return self.interface().ifconfig()[3]

    # A kind's own

    def begin(self):
        """Begin to connect; whatever it raises: that failed at once."""

    def interface(self):
        """Its network interface, of the port's `network`."""

    def _is_up(self):
        try:
            return self.interface().isconnected()
        except OSError:
            return False

    def _failure(self):
        return ""

# start.py - begins bridges: those of the configuration at the start, and those of Broker.bridge();
# and what the session of one gets with each connection. Loaded on demand; owns nothing; allocates.
from slotmq.bridge.bridges import Bridges
from slotmq.config.settings import ConfError
from slotmq.embed.packets import field, packet_of
from slotmq.platform import ondemand
from slotmq.platform.runtime import const

_NONE = const(0xFFFF)
_WARNING = const(2)
_NOTICE = const(4)
_FAILURE = const(0x80)
_MAXIMUM_QOS = const(0x24)  # a property of CONNACK
_NOT_BACK = const(16 | 8)  # No Local, and Retain As Published: see v5/extension.py


def load():
    """The code of bridges is there now, and stays."""


def options(name, addresses, topics, values):
    """The Options that Broker.bridge() is given."""
    if isinstance(addresses, str):
        addresses = (addresses,)
    return ondemand.take("bridge.options", 0).options(name, addresses, topics, **values)


def add(broker, options):
    """Begin one bridge; -> it."""
    module = ondemand.take("bridge.options", broker.now)
    module.check(options, broker.limits, broker.settings)
    if not options.context:
        module.load(options)
    return (broker.bridges or Bridges(broker)).add(options)


def start(app):
    """Begin the bridges of an App's configuration. ConfError: limits are too low for one."""
    for each in app.settings.connections:
        try:
            add(app.broker, each)
        except ValueError as error:
            raise ConfError("%s: connection: expected %s" % (each.place, error))


def subscribe(one, session):
    """Subscribe to what goes out, and to nothing else."""
    broker = one.broker
    subs = broker.subscriptions
    wanted = [topic.filters[0] for topic in one.outs]
    sub = broker.sessions.first_sub[session]
    while sub != _NONE:
        after = subs.next_in_session[sub]
        end = len(broker.work)
        at = subs.filter_text(subs.node[sub], broker.work, end)
        if bytes(broker.work[at:end]) not in wanted:  # of an earlier configuration
            subs.remove(broker.sessions, sub)
        sub = after
    add = ondemand.take("protocol.subscribe", broker.now).add
    for topic in one.outs:
        name = topic.filters[0]
        qos = min(topic.qos, one.remote.get(_MAXIMUM_QOS, 2))
        if add(broker, session, name, 0, len(name), qos) >= _FAILURE:
            one._log(_WARNING, "may not or cannot subscribe to %r" % name.decode())
    sub = broker.sessions.first_sub[session]
    while sub != _NONE:
        broker.five.options[sub] = _NOT_BACK
        sub = subs.next_in_session[sub]


def drop_scans(one):
    """The other broker has our retained messages: what has changed since waits in the session."""
    broker = one.broker
    sub = broker.sessions.first_sub[one.session]
    while sub != _NONE:
        broker.subscriptions.scan[sub] = 0
        sub = broker.subscriptions.next_in_session[sub]
    broker.sessions.scans[one.session] = 0


def say_up(one):
    """Say here and there that it is up; not from connected(), since a packet is handled then."""
    one._tell(b"1")
    one._put(state_of(one, b"1"))
    one._log(_NOTICE, "up, %s" % one.where())


def state_of(one, text):
    """The PUBLISH that says its state there, or b""."""
    options = one.options
    if not options.notifications or options.notifications_local_only:
        return b""
    topic = field(one.state_topic.encode())
    packet = packet_of(0x31 & one.mask(), topic + (b"\0" if one.is_5 else b"") + text)
    return b"" if one._is_too_large(packet) else packet

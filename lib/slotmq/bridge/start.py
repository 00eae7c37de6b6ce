# start.py - begins bridges: those of the configuration at the start, and those of Broker.bridge().
# Loaded on demand; owns nothing; allocates.
from slotmq.bridge.bridges import Bridges
from slotmq.config.settings import ConfError
from slotmq.platform import ondemand


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

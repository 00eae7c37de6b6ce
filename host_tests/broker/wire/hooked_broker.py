"""A program's broker with hooks, on both runtimes: hooked_broker.py HOOKS PORT FOLDER

It stops when the client `stop` connects. HOOKS is one of:

permissions  decides who may connect, publish and subscribe
presence     publishes which clients are connected, with a Pico W's limits
departures   publishes which clients have gone, with one route, so that a second topic evicts the
             first; while the client `hold` connects, the broker blocks: the file `held` in the
             folder says that it does, the file `go` ends it
"""

import os
import sys
import time

from slotmq import Broker, Limits
from slotmq_boards.RPI_PICO_W.limits import LIMITS

ONE_ROUTE = Limits(
    connections=8, sessions=8, subscriptions=12, tx_bytes=256, routes=1, route_entries=12
)


class Hooks:
    def __init__(self, broker, folder):
        self.broker = broker
        self.folder = folder

    def may_connect(self, client_id, user_name, password):
        if client_id == b"stop":
            self.broker.stop()
        return 0


class Permissions(Hooks):
    def may_connect(self, client_id, user_name, password):
        Hooks.may_connect(self, client_id, user_name, password)
        if user_name is None:
            return 5
        return 0 if password == b"right" else 4

    def may_publish(self, client_id, topic):
        return b"closed" not in topic

    def may_subscribe(self, client_id, topic_filter, qos):
        return b"closed" not in topic_filter and qos < 2


class Presence(Hooks):
    def on_connect(self, client_id):
        self.broker.publish(b"here/" + client_id, b"yes", 1, retain=True)

    def on_disconnect(self, client_id, reason):
        self.broker.publish(b"here/" + client_id, b"no", 1, retain=True)


class Departures(Hooks):
    def may_connect(self, client_id, user_name, password):
        if client_id == b"hold":
            open(self.folder + "/held", "w").close()  # noqa: PTH123 - MicroPython
            while "go" not in os.listdir(self.folder):  # noqa: PTH208
                time.sleep(0.01)
        return Hooks.may_connect(self, client_id, user_name, password)

    def on_disconnect(self, client_id, reason):
        self.broker.publish(b"gone/" + client_id, b"x", 1)


def main(name, port, folder):
    hooks, limits = {
        "permissions": (Permissions, Limits()),
        "presence": (Presence, LIMITS),
        "departures": (Departures, ONE_ROUTE),
    }[name]
    broker = Broker(limits)
    broker.hooks = hooks(broker, folder)
    broker.listen("127.0.0.1", int(port))
    print("listening")
    if hasattr(sys.stdout, "flush"):
        sys.stdout.flush()
    broker.run()


main(*sys.argv[1:])

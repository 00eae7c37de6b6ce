"""A broker that tells everybody who has gone: farewell_broker.py PORT FOLDER

With room for one route, so that another one takes its place. While the client `hold` comes in
it stands still, from when the file `held` is in the folder until `go` is.
"""

import os
import sys
import time

from slotmq import Broker, Limits

LIMITS = Limits(
    connections=8, sessions=8, subscriptions=12, tx_bytes=256, routes=1, route_entries=12
)


class Farewell:
    def __init__(self, broker, folder):
        self.broker = broker
        self.folder = folder

    def may_connect(self, client_id, user_name, password):
        if client_id == b"stop":
            self.broker.stop()
        if client_id == b"hold":
            open(self.folder + "/held", "w").close()  # noqa: PTH123 - MicroPython
            while "go" not in os.listdir(self.folder):  # noqa: PTH208
                time.sleep(0.01)
        return 0

    def on_disconnect(self, client_id, reason):
        self.broker.publish(b"gone/" + client_id, b"x", 1)


def main():
    broker = Broker(LIMITS)
    broker.hooks = Farewell(broker, sys.argv[2])
    broker.listen("127.0.0.1", int(sys.argv[1]))
    print("listening")
    if hasattr(sys.stdout, "flush"):
        sys.stdout.flush()
    broker.run()


main()

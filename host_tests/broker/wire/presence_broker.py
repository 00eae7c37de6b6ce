"""A broker whose hooks publish who is there, with a Pico W's limits: presence_broker.py PORT"""

import sys

from slotmq import Broker
from slotmq_boards.RPI_PICO_W.limits import LIMITS


class Presence:
    def __init__(self, broker):
        self.broker = broker

    def may_connect(self, client_id, user_name, password):
        if client_id == b"stop":
            self.broker.stop()
        return 0

    def on_connect(self, client_id):
        self.broker.publish(b"here/" + client_id, b"yes", 1, retain=True)

    def on_disconnect(self, client_id, reason):
        self.broker.publish(b"here/" + client_id, b"no", 1, retain=True)


def main():
    broker = Broker(LIMITS)
    broker.hooks = Presence(broker)
    broker.listen("127.0.0.1", int(sys.argv[1]))
    print("listening")
    if hasattr(sys.stdout, "flush"):
        sys.stdout.flush()
    broker.run()


main()

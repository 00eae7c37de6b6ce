"""A broker with hooks, as a program of one's own has it: hooked_broker.py PORT

Runs on both runtimes. It stops when the user `stop` connects.
"""

import sys

from slotmq import Broker, Limits


class Hooks:
    def __init__(self, broker):
        self.broker = broker

    def may_connect(self, client_id, user_name, password):
        if user_name == b"stop":
            self.broker.stop()
        if user_name is None:
            return 5
        return 0 if password == b"right" else 4

    def may_publish(self, client_id, topic):
        return b"closed" not in topic

    def may_subscribe(self, client_id, topic_filter, qos):
        return b"closed" not in topic_filter and qos < 2


def main():
    broker = Broker(Limits())
    broker.hooks = Hooks(broker)
    broker.listen("127.0.0.1", int(sys.argv[1]))
    print("listening")
    if hasattr(sys.stdout, "flush"):
        sys.stdout.flush()
    broker.run()


main()

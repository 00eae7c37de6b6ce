"""What $SYS says of each bridge, and `slotmq status` shows."""

import scratch
from bridge_case import BridgeCase
from packets import publish, subscribe

from slotmq import Limits

BASE = b"$SYS/broker/connection/edge/"


class TestFigures(BridgeCase):
    LIMITS = {"queued": 3, "inflight": 2, "deliveries": 12}  # noqa: RUF012

    def start(self, limits=None, **settings):
        super().start(limits, sys_interval=10, **settings)

    def told(self, client):
        """The newest values by name, since the last call; all were received."""
        for _ in range(30):
            client.answer()
            self.world.turn(1)
        found = {topic[len(BASE) :].decode(): text for topic, text, _ in client.messages}
        client.messages.clear()
        return found

    def test_a_new_subscription_gets_them_and_later_what_has_changed(self):
        self.bridge(("a", "out", 1), bridge_max_packet_size=128)
        client = self.world.client("c")
        client.send(subscribe(1, (BASE + b"#").decode(), 1))
        self.world.turn(3)
        reasons = ("in/topic", "in/size", "out/full", "out/size", "out/refused")
        wanted = {f"refused/{reason}": b"0" for reason in reasons}
        wanted |= {"link": b"connecting 192.0.2.1:1883", "queued": b"0", "losses": b"0"}
        self.assertEqual(self.told(client), wanted)
        remote = self.remote()
        self.wait(11)
        self.told(client)
        self.broker.publish("a", b"x" * 200, 1)
        self.wait(1)
        for k in range(7):
            self.broker.publish("a", b"%d" % k, 1)
        self.wait(11)
        wanted = {"refused/out/size": b"1", "queued": b"5", "refused/out/full": b"2"}
        self.assertEqual(self.told(client), wanted)
        self.deliver(remote)
        self.wait(11)
        self.assertEqual(self.told(client), {"queued": b"0"})
        remote.leave()
        self.network.down.add(1883)
        self.wait(11)
        wanted = {"losses": b"1", "link": b"waiting 192.0.2.1:1883"}
        self.assertEqual(self.told(client), wanted)

    def test_what_the_queue_drops_while_it_is_away(self):
        for policy in ("drop_newest", "drop_oldest"):
            self.start(Limits(**self.LIMITS), when_full={"deliveries": policy})
            self.network.down.add(1883)
            one = self.bridge(("a", "out", 1))
            for k in range(5):
                self.broker.publish("a", b"%d" % k, 1)
            self.assertEqual(one.refusals, {"out/full": 2}, policy)
            if policy == "drop_newest":
                self.tearDown()

    def test_each_bridge_has_its_own_and_rights_hold(self):
        rules = scratch.write("topic read $SYS/broker/connection/b/#\n")
        self.start(acl_file=rules)
        self.bridge(("a", "out", 1), remote_clientid="b", local_username=None)
        self.bridge(("b", "out", 1), remote_clientid="c", addresses=("h:5",))
        client = self.world.client("c")
        client.send(subscribe(1, "$SYS/broker/connection/+/link", 0))
        self.world.turn(6)
        found = client.packets()[1:]
        name = "$SYS/broker/connection/b/link"
        wanted = [publish(name, b"connecting 192.0.2.1:1883", retain=True)]
        self.assertEqual(found, wanted)

    def test_a_scan_that_pauses_goes_on_where_it_was(self):
        self.bridge(("a", "out", 1))
        client = self.world.client("c")
        client.stream.write_some = lambda n: None
        client.send(subscribe(1, "$SYS/broker/connection/#", 0))
        self.world.turn(5)
        client.stream.write_some = lambda n: min(n, 40)
        self.world.turn(60)
        names = [data[4 : 4 + data[3]] for data in client.packets()[1:]]
        self.assertEqual((len(names), len(set(names))), (8, 8))

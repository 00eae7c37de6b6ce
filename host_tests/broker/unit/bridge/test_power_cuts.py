"""A bridge with a journal: what waits, what is on its way and what has come survive a cut."""

from bridge_case import ACCEPTED, RESUMED, Network, Remote
from journal_case import JournalCase
from packets import PUBACK, PUBCOMP, PUBREC, PUBREL, ack, publish, read_publish


class TestPowerCuts(JournalCase):
    def start(self):
        super().start()
        self.network = Network()
        self.network.install()
        self.one = self.broker.bridge(
            "up", "h", [("a", "both", 2)], remote_clientid="edge", notifications=False
        )
        self.world.turn(2)

    def remote(self, answer=ACCEPTED, held=None):
        remote = Remote(self.network.streams[-1], held)
        self.world.turn(2)
        self.assertEqual([data[0] for data in remote.packets()], [0x10])
        remote.send(answer)
        self.world.turn(3)
        return remote

    def sender(self, payload, qos):
        client = self.client("sender")
        client.send(publish("a", payload, qos, 1))
        self.world.turn(3)
        self.assertEqual(client.packets(), [ack(PUBACK if qos == 1 else PUBREC, 1)])

    def test_what_waits(self):
        self.sender(b"1", 1)
        self.sender(b"2", 2)
        self.reboot()
        self.sender(b"3", 1)
        self.reboot()
        remote = self.remote()
        for _ in range(6):
            remote.receive()
            self.world.turn()
        self.assertEqual(remote.messages, [(b"a", b"1", 1), (b"a", b"2", 2), (b"a", b"3", 1)])
        self.assertIn("a (local.edge:2)", self.tree())

    def test_what_is_on_its_way_comes_again_with_the_same_ids(self):
        remote = self.remote()
        self.sender(b"1", 1)
        self.sender(b"2", 2)
        self.sender(b"3", 2)
        sent = [data for data in remote.packets() if data[0] >> 4 == 3]
        ids = [read_publish(data)[3] for data in sent]
        remote.send(ack(PUBREC, ids[1]))
        self.world.turn(3)
        self.assertEqual(remote.packets(), [ack(PUBREL, ids[1])])
        self.reboot()
        remote = Remote(self.network.streams[-1])
        remote.send(RESUMED)
        self.world.turn(4)
        found = [data for data in remote.packets() if data[0] >> 4 in (3, 6)]
        wanted = [publish("a", b"1", 1, ids[0], dup=True), ack(PUBREL, ids[1])]
        wanted += [publish("a", b"3", 2, ids[2], dup=True)]
        self.assertEqual(found, wanted)

    def test_what_has_come_is_known(self):
        reader = self.subscriber("reader", "a", 2)
        self.leave(reader)
        remote = self.remote()
        remote.send(publish("a", b"once", 2, 7))
        self.world.turn(3)
        self.assertIn(ack(PUBREC, 7), remote.packets())
        self.reboot()
        remote = self.remote(RESUMED)
        remote.send(publish("a", b"once", 2, 7, dup=True))
        self.world.turn(2)
        remote.send(ack(PUBREL, 7))
        self.world.turn(2)
        self.assertEqual(remote.packets()[-2:], [ack(PUBREC, 7), ack(PUBCOMP, 7)])
        self.assertEqual(self.payloads("reader"), [b"once"])

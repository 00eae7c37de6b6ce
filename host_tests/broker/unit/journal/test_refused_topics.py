"""A journal with topics that an older broker took, or allow_control_characters: the start without
it drops their messages, which would end each client of mosquitto that gets them."""

from journal_case import JournalCase
from packets import PUBACK, PUBCOMP, PUBREC, PUBREL, ack, connect, publish, subscribe

ALLOWED = (("allow_control_characters", True),)
SAID = "%d messages had control characters in their topics: dropped; see allow_control_characters"
ODD = ("r/\t", "r/\x7f", "r/\ufffe")


class TestRefusedTopics(JournalCase):
    settings = ALLOWED

    def reboot_with(self, *settings):
        self.settings = settings
        self.reboot()

    def looks(self, text="#"):
        """The topics of what is retained."""
        client = self.client("looks")
        client.send(subscribe(1, text, 1))
        self.world.turn(5)
        client.answer()
        self.leave(client)
        return sorted(topic for topic, _, _ in client.messages)

    def test_retained_messages(self):
        for version in (5, 3):
            self.setUp()
            client = self.client("p")
            for topic in ODD + ("r/1", "r/\u00fc"):  # noqa: RUF005
                self.ask(client, publish(topic, b"x", 1, 1, retain=True), ack(PUBACK, 1))
            self.reboot_with(("mqtt_versions", version))
            self.assertEqual(self.reports, [SAID % 3])
            wanted = [b"r/1", "r/\u00fc".encode()]
            self.assertEqual(self.looks(), wanted)
            self.assertEqual(self.broker.messages.count[0], 2)
            self.reboot()
            self.assertEqual((self.reports, self.looks()), ([], wanted))
            self.settings = ALLOWED

    def test_they_stay_where_they_are_allowed(self):
        client = self.client("p")
        for topic in ODD:
            self.ask(client, publish(topic, b"x", 1, 1, retain=True), ack(PUBACK, 1))
        self.reboot()
        self.assertEqual(self.reports, [])
        self.assertEqual(self.looks(), sorted(topic.encode() for topic in ODD))

    def test_queued_messages(self):
        """Also one that was sent: its client left, and would again. At QoS 2 that goes on without
        its message: the client may know the packet id."""
        for version, qos in ((5, 1), (3, 1), (5, 2), (3, 2)):
            self.settings = ALLOWED
            self.setUp()
            self.subscriber("s", "#", qos)
            client = self.client("p")
            for n, topic in enumerate(("a", ODD[0], "b", ODD[1])):
                self.ask(
                    client, publish(topic, b"%d" % n, qos, 1), ack((PUBACK, PUBREC)[qos - 1], 1)
                )
                if qos == 2:
                    self.ask(client, ack(PUBREL, 1), ack(PUBCOMP, 1))
            self.reboot_with(("mqtt_versions", version))
            self.assertEqual(self.reports, [SAID % 2])
            self.assertEqual(self.payloads("s"), [b"0", b"2"])
            self.assertEqual(self.broker.messages.count[0], 0)
            self.assertEqual(self.broker.deliveries.count[0], 0)
            self.reboot()
            self.assertEqual(self.reports, [])

    def test_wills_and_what_waits_for_pubrel(self):
        self.reboot_with(("qos2_delivery", "release"), *ALLOWED)
        self.leave(self.subscriber("s", "#", 1))
        self.come(connect("w", False, will=(ODD[0], b"gone", 1)))
        client = self.client("p", clean=False)
        self.ask(client, publish(ODD[2], b"x", 2, 7), ack(PUBREC, 7))
        self.ask(client, publish("t", b"y", 2, 8), ack(PUBREC, 8))
        self.reboot_with(("qos2_delivery", "release"))
        self.assertEqual(self.reports, [SAID % 2])
        client = self.client("p", b"\x20\2\1\0", clean=False)
        client.send(ack(PUBREL, 7) + ack(PUBREL, 8))
        self.world.turn(3)
        self.assertEqual(self.payloads("s"), [b"y"])
        self.assertEqual(self.broker.messages.count[0], 0)
        self.reboot()
        self.assertEqual(self.reports, [])

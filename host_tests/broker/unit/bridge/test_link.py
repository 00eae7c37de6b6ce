"""A bridge's connection comes, is lost and comes back; what waits passes in order, once."""

import packets5
import scratch
from bridge_case import ACCEPTED, RESUMED, BridgeCase, Remote
from packets import (
    DISCONNECT,
    PINGREQ,
    PINGRESP,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    ack,
    connect,
    packet,
    publish,
    read_publish,
    subscribe,
)

from slotmq import Limits
from slotmq.bridge import link
from slotmq.embed import publishing
from slotmq.net.websocket import acceptor
from slotmq.platform.dial import host_name
from slotmq.tables import epoch


def as_bridge(data, level=0x84):
    """CONNECT of mosquitto's bridges."""
    at = data.index(b"MQTT") + 4
    return data[:at] + bytes((level,)) + data[at + 1 :]


class TestConnecting(BridgeCase):
    LIMITS = {"bridges": 3}  # noqa: RUF012

    def test_it_connects_as_a_bridge_and_subscribes(self):
        one = self.bridge(("in/#", "in", 1), ("out/#", "out", 2))
        self.assertEqual(one.text(), "connecting")
        remote = self.remote()
        self.assertEqual(self.connect, [as_bridge(connect("edge", False, keep_alive=60))])
        self.assertEqual(self.subacks(remote), [subscribe(65500, "in/#", 1)])
        self.assertEqual(one.text(), "up")

    def test_user_password_clean_and_keep_alive(self):
        self.bridge(
            ("#",),
            remote_username="u",
            remote_password="p",
            cleansession=True,
            keepalive_interval=9,
            try_private=False,
        )
        self.remote()
        wanted = connect("edge", True, keep_alive=9, username="u", password=b"p")
        self.assertEqual(self.connect, [wanted])

    def test_a_broker_that_knows_no_bridges_is_asked_as_by_a_client(self):
        self.bridge(("a/#", "in"))
        remote = self.remote(b"\x20\x02\0\1")
        remote.leave()
        self.world.turn(3)
        remote = self.remote()
        self.assertEqual(self.connect, [connect("edge", False, keep_alive=60)])
        self.subacks(remote)
        self.lose(remote)
        self.assertEqual(self.connect, [connect("edge", False, keep_alive=60)])

    def test_a_refusal_and_a_silent_broker(self):
        one = self.bridge(("a/#",))
        for answer in (b"\x20\x02\0\5", b"\x20\x02\0", b"\x30\0", publish("a", b"x"), b"\x10\0"):
            self.remote(answer)
            self.world.turn(2)
            self.dialled()
            self.assertEqual(self.broker.sessions.conn[one.session], 0xFFFF)
        self.assertEqual(len(self.network.streams), 6)

    def test_pauses_grow_within_their_bounds(self):
        self.network.down.add(1883)
        self.network.noise = (1 << 24) - 1
        one = self.bridge(("a/#",), restart_timeout=(2, 7))
        pauses = set()
        for _ in range(900):
            self.world.turn(1, 100)
            pauses.add(one.pause)
        self.assertEqual(min(pauses) >= 20, True)
        self.assertEqual(max(pauses) <= 70, True)
        self.assertGreater(len(pauses), 1)
        self.assertLess(len(self.network.addresses), 46)

    def test_the_next_address_is_tried_and_then_the_first_again(self):
        self.network.down.add(1)
        lines = []
        self.broker.log = lambda bit, text: lines.append(text)
        self.broker.log_mask = 2 | 4
        self.bridge(("a/#",), addresses=("h:1", "h:2"), restart_timeout=5)
        wanted = ["Bridge 'up': cannot connect to h:1 (refused)."]
        wanted.append("Bridge 'up': the next attempt in 1 s, h:2.")
        self.assertEqual(lines, wanted)
        self.wait(2)
        self.assertEqual(self.network.addresses, [("h", 1), ("h", 2)])
        remote = self.remote()
        self.network.down.clear()
        remote.leave()
        self.world.turn(3)
        self.assertEqual(lines[-1], "Bridge 'up': the next attempt in 5 s, h:1.")
        self.wait(6)
        self.assertEqual(self.network.addresses[2:], [("h", 1)])

    def test_each_packet_of_the_other_broker_is_shown_as_the_bridges(self):
        lines = []
        self.broker.log = lambda bit, text: lines.append(text)
        self.broker.log_mask = 64
        self.bridge(("a/#",))
        self.wait(2)
        remote = self.remote()
        remote.send(PINGRESP)
        self.world.turn(3)
        found = [line for line in lines if line.startswith("Received")]
        self.assertEqual(found[0], "Received CONNACK from the bridge 'up' (4 bytes)")
        self.assertEqual(found[-1], "Received PINGRESP from the bridge 'up' (2 bytes)")

    def tried(self, answer):
        """A minute later the first address is tried: it accepts, and answers so."""
        count = len(self.network.addresses)
        self.wait(31)
        self.second.send(PINGRESP)
        self.wait(30)
        self.second.send(PINGRESP)
        self.assertEqual(self.network.addresses[count:], [("h", 1)])
        first = Remote(self.network.streams[-1])
        said = first.packets()
        self.assertEqual(said, [as_bridge(connect("edge", False, keep_alive=60))])
        first.send(answer)
        self.world.turn(3)
        return first

    def start_with_the_second(self):
        self.network.down.add(1)
        addresses = "h:1", "h:2"
        self.bridge(("a/#", "out", 1), addresses=addresses, restart_timeout=5)
        self.wait(2)
        self.second = self.remote()

    def test_the_first_address_is_taken_again_as_soon_as_it_lets_the_bridge_in(self):
        self.start_with_the_second()
        self.wait(61)
        self.assertEqual(self.network.addresses, [("h", 1), ("h", 2), ("h", 1)])
        self.second.send(PINGRESP)
        self.network.down.clear()
        first = self.tried(ACCEPTED)
        self.assertEqual((first.packets(), first.stream.closed), ([DISCONNECT], True))
        self.assertEqual(self.second.packets()[-1], DISCONNECT)
        self.assertEqual(self.network.addresses[3:], [("h", 1), ("h", 1)])
        self.broker.publish("a/x", b"x", 1)
        remote = self.remote()
        self.deliver(remote)
        self.assertEqual(remote.messages, [(b"a/x", b"x", 1)])
        self.wait(70)
        self.assertEqual(len(self.network.addresses), 5)

    def test_a_first_address_that_only_accepts_does_not_move_it(self):
        """As a proxy does whose broker is away."""
        self.start_with_the_second()
        self.network.down.clear()
        self.wait(2)
        for answer in (b"", b"\x20\x02\0\3", b"H", b"HTTP/1.1 400", b""):
            first = self.tried(answer)
            self.assertEqual(first.stream.closed, bool(answer), answer)
            self.assertFalse(self.second.stream.closed, answer)
        first.leave()
        self.world.turn(2)
        self.assertTrue(first.stream.closed)
        first = self.tried(b"\x20\2\0\1")  # it is there, and knows no bridges
        self.assertTrue(self.second.stream.closed)
        self.assertEqual(self.broker.bridges.every[0].losses, 0)

    def test_an_answer_of_the_first_address_that_comes_in_pieces(self):
        self.start_with_the_second()
        self.network.down.clear()
        first = self.tried(b"\x20")
        for piece in (b"\2", b"\0"):
            first.send(piece)
            self.world.turn(2)
            self.assertFalse(first.stream.closed or self.second.stream.closed)
        first.send(b"\0")
        self.world.turn(2)
        self.assertTrue(self.second.stream.closed)
        self.assertEqual(first.packets(), [DISCONNECT])

    def test_a_name_is_looked_for_again_in_a_moment(self):
        """And not after the next wait for events, of 250 ms."""
        answers = [None] * 6 + [[("h", 1883)]]
        link.find = lambda host, port, now: answers.pop(0)
        self.bridge(("a/#",), addresses=("h",))
        while answers:
            self.assertEqual(self.broker.turn_soon, 2)
            self.world.turn()
        self.assertEqual(self.network.addresses, [("h", 1883)])
        self.remote()
        self.assertEqual(self.broker.turn_soon, 0)

    def test_a_broker_that_accepts_and_closes_is_left_alone_for_longer(self):
        self.network.noise = -1  # the longest pause each time
        self.bridge(("a/#",), restart_timeout=(2, 60))
        pauses = []
        for _ in range(6):
            self.remote().leave()
            self.world.turn(2)
            pauses.append(self.one.pause)
            self.dialled()
        self.assertEqual(pauses, [59, 176, 527, 600, 600, 600])
        remote = self.remote()
        self.wait(59)
        remote.send(PINGRESP)
        self.wait(10)
        remote.leave()  # it has stood for longer than the last pause
        self.world.turn(2)
        self.assertEqual(self.one.pause, 59)

    def test_how_long_a_connection_must_stand_may_be_said(self):
        self.network.noise = -1
        self.bridge(("a/#",), restart_timeout=(2, 60, 3))
        for stands, pause in ((2, 59), (2, 176), (4, 59), (2, 176)):
            remote = self.remote()
            self.wait(stands)
            remote.leave()
            self.world.turn(2)
            self.assertEqual(self.one.pause, pause)
            self.dialled()

    def test_another_address_is_tried_if_the_first_one_accepts_and_closes(self):
        self.bridge(("a/#",), addresses=("h:1", "h:2"), restart_timeout=5)
        for _ in range(2):
            self.remote().leave()
            self.dialled()
        self.assertEqual(self.network.addresses, [("h", 1), ("h", 1), ("h", 2)])

    def test_without_heap_it_tries_again(self):
        failing = ["find", "dial", "find"]

        def unless(name, function):
            def call(*args):
                if failing[:1] == [name]:
                    failing.pop(0)
                    raise MemoryError
                return function(*args)

            return call

        link.find = unless("find", self.network.find)
        link.dial = unless("dial", self.network.dial)
        one = self.bridge(("a", "out", 1))
        self.assertEqual((one.text(), self.network.streams), ("waiting", []))
        self.broker.publish("a", b"x", 1)
        self.dialled()
        remote = self.remote()
        self.deliver(remote)
        self.assertEqual((failing, remote.messages), ([], [(b"a", b"x", 1)]))
        self.assertEqual(one.text(), "up")

    def test_keep_alive(self):
        self.bridge(("a/#",), keepalive_interval=10)
        remote = self.remote()
        for _ in range(3):
            self.wait(10)
            self.assertEqual(remote.packets(), [PINGREQ])
            remote.send(PINGRESP)
        self.wait(16)
        self.assertEqual(remote.packets(), [PINGREQ])
        self.assertTrue(remote.stream.closed)

    def test_an_epoch_moves_all_its_times(self):
        """An attribute that is about as large as the time is one."""
        self.broker.now = now = 259200000 - 7000
        self.world.turn()
        addresses = ("h:1", "h:2")
        one = self.bridge(("a/#", "both", 1), addresses=addresses, keepalive_interval=10)
        self.network.streams[-1].ended = True
        self.dialled()
        remote = self.remote()
        self.subacks(remote)
        self.wait(1)
        before = {}
        for name in dir(one):
            value = getattr(one, name)
            if isinstance(value, int) and value > now - 1000:
                before[name] = value
        self.assertTrue(
            {"due", "suback_due", "wake", "next_probe", "began"} <= set(before), before
        )
        remote.send(PINGRESP)
        epoch.take(self.broker, 259200000)
        for name, value in before.items():
            self.assertEqual(getattr(one, name), value - 259200000, name)
        # What they are for goes on: PINGREQ, and the way back to the first address.
        remote.packets()
        count = len(self.network.addresses)
        for _ in range(7):
            self.wait(10)
            self.assertEqual(remote.packets(), [PINGREQ])
            remote.send(PINGRESP)
        self.assertEqual(self.network.addresses[count:], [("h", 1)])

    def test_no_suback_ends_the_connection_and_a_refused_filter_does_not(self):
        lines = []
        self.broker.log = lambda bit, text: lines.append(text)
        self.broker.log_mask = 2
        self.bridge(("a/#", "in"), ("b/#", "in"))
        remote = self.remote()
        first, second = [data for data in remote.packets() if data[0] == 0x82]
        remote.send(b"\x90\x03" + first[2:4] + b"\x80")
        self.wait(15)
        self.assertFalse(remote.stream.closed)
        self.assertEqual(lines, ["Bridge 'up': the other broker does not grant 'a/#'."])
        self.wait(10)
        self.assertTrue(remote.stream.closed)
        self.assertTrue(second)

    def test_no_unsuback_ends_the_connection_and_the_next_one_is_up(self):
        lines = []
        self.broker.log = lambda bit, text: lines.append(text)
        self.broker.log_mask = 2
        one = self.bridge(("in", "in"), ("out", "out"), bridge_attempt_unsubscribe=True)
        for _ in range(2):
            remote = self.remote()
            self.subacks(remote)
            self.wait(19)
            self.assertEqual((remote.stream.closed, one.is_told), (False, False))
            self.wait(2)
            self.assertTrue(remote.stream.closed)
            self.dialled()
        text = "Bridge 'up': lost 192.0.2.1:1883 (no SUBACK or UNSUBACK in 20 s)."
        self.assertEqual(lines, [text] * 2)
        remote = self.remote()
        self.subacks(remote)
        remote.send(b"\xb0\x02\xff\xdd")
        self.wait(60)
        self.assertEqual((one.text(), one.is_told), ("up", True))

    def test_what_only_clients_may_send_ends_the_connection(self):
        for wrong in (subscribe(1, "#", 0), packet(0xA2, b"\0\1\0\1a"), connect("x")):
            one = self.bridge(("a/#",), remote_clientid=f"c{wrong[0]}")
            remote = self.remote()
            remote.send(wrong)
            self.world.turn(2)
            self.assertTrue(remote.stream.closed, wrong)
            one.due = 1 << 29  # it does not come back
        client = self.world.client("c")
        client.send(b"\x90\x03\0\1\0")  # and this only brokers
        self.world.turn(2)
        self.assertTrue(client.stream.closed)

    def test_out_topics_are_unsubscribed_there(self):
        topics = ("in", "in", 1), ("out", "out"), ("both", "both")
        one = self.bridge(*topics, bridge_attempt_unsubscribe=True)
        remote = self.remote()
        found = remote.packets()
        wanted = [subscribe(65500, "in", 1), subscribe(65501, "both", 0)]
        wanted.append(packet(0xA2, b"\xff\xde\0\3out"))
        self.assertEqual(found, wanted)
        remote.send(b"\x90\x03\xff\xdc\1" + b"\x90\x03\xff\xdd\0" + b"\xb0\x02\xff\xde")
        self.world.turn(2)
        self.assertEqual((one.text(), one.is_told), ("up", True))

    def test_mqtt_3_1(self):
        self.bridge(("a",), bridge_protocol_version="mqttv31")
        self.remote()
        wanted = connect("edge", False, keep_alive=60, level=3)
        self.assertEqual(self.connect, [wanted.replace(b"MQIsdp\x03", b"MQIsdp\x83")])

    def test_once(self):
        self.bridge(("a",), start_type="once")
        remote = self.remote(b"\x20\x02\0\1")
        remote.leave()
        self.world.turn(3)
        remote = self.remote()  # as a client
        lines = []
        self.broker.log = lambda bit, text: lines.append(text)
        self.broker.log_mask = 4
        remote.leave()
        self.wait(60)
        self.assertEqual(len(self.network.streams), 2)
        self.assertEqual(lines[-1], "Bridge 'up': no further attempt: start_type once.")

    def test_lazy(self):
        one = self.bridge(("a", "out", 1), start_type="lazy", threshold=3, idle_timeout=20)
        self.assertEqual(self.network.streams, [])
        for k in range(3):
            self.broker.publish("a", b"%d" % k, 1)
            self.wait(1)
        remote = self.remote()
        self.deliver(remote)
        self.assertEqual(len(remote.messages), 3)
        self.wait(15)
        remote.send(publish("a", b"in", 1, 9))  # that is a message too
        self.wait(15)
        self.assertEqual(remote.packets(), [ack(PUBACK, 9)])
        self.wait(7)
        self.assertEqual(remote.packets(), [DISCONNECT])
        self.assertTrue(remote.stream.closed)
        self.broker.publish("a", b"3", 1)
        self.wait(60)
        self.assertEqual((one.text(), len(self.network.streams)), ("waiting", 1))
        for count in (2, 3, 4):
            # It has left in order, though it did not stand for long: there is no pause
            self.broker.publish("a", b"4", 1)
            self.broker.publish("a", b"5", 1)
            self.wait(1)
            self.assertEqual(len(self.network.streams), count)
            remote = self.remote()
            self.deliver(remote)
            self.wait(22)
            self.assertEqual(remote.packets(), [DISCONNECT])
            self.broker.publish("a", b"3", 1)
            self.wait(1)

    def test_a_lazy_one_comes_when_its_queue_is_full_though_few_messages_wait(self):
        """Its part of the messages' bytes, or of the deliveries that others fill."""
        limits = {"queued": 20, "deliveries": 40, "messages": 40}
        for size in (100, 700, 1200):
            self.start(Limits(message_bytes=9000, **limits))
            self.bridge(("a", "out", 1), start_type="lazy")
            count = 0
            while not self.network.streams and count < 10:
                self.broker.publish("a", b"x" * size, 1)
                self.wait(1)
                count += 1
            self.assertEqual((count == 10, self.one.refusals), (size == 100, {}), size)
            remote = self.remote()
            self.deliver(remote)
            self.assertEqual(len(remote.messages), count)
            self.tearDown()
        self.start(Limits(**limits), max_offline_share=10)
        self.bridge(("a", "out", 1), start_type="lazy")
        other = self.world.client("c", clean=True)
        other.send(subscribe(1, "o", 1))
        self.world.turn(2)
        for _ in range(8):
            self.broker.publish("o", b"", 1)
        self.world.turn(2)
        self.broker.publish("a", b"x", 1)
        self.wait(1)
        self.assertEqual((self.one.refusals, len(self.network.streams)), ({"out/full": 1}, 1))

    def test_an_address_of_its_own_that_it_does_not_have_is_named(self):
        def dial(*_):
            raise OSError(99, "Cannot assign requested address")

        lines = []
        self.broker.log = lambda bit, text: lines.append(text)
        self.broker.log_mask = 2
        link.dial = dial
        self.bridge(("a", "out", 1), bridge_bind_address="192.0.2.5")
        why = "bridge_bind_address 192.0.2.5 is not of this computer"
        self.assertEqual(lines, [f"Bridge 'up': cannot connect to 192.0.2.1:1883 ({why})."])

    def test_a_disconnect_of_the_other_broker_and_one_of_its_own_are_told_apart(self):
        lines = []
        self.broker.log = lambda bit, text: lines.append(text)
        self.broker.log_mask = 2 | 4
        options = {"start_type": "lazy", "threshold": 1, "idle_timeout": 1}
        self.bridge(("a", "out", 1), **options)
        for leaves, losses in ((False, 0), (True, 1)):
            self.broker.publish("a", b"x", 1)
            self.dialled()
            remote = self.remote()
            self.deliver(remote)
            if leaves:
                remote.send(DISCONNECT)
            self.wait(2)
            self.assertEqual(self.one.losses, losses)
        wanted = ["Bridge 'up': leaves 192.0.2.1:1883."]
        wanted.append("Bridge 'up': lost 192.0.2.1:1883 (it leaves: DISCONNECT).")
        self.assertEqual([line for line in lines if ": le" in line or ": lo" in line], wanted)

    def test_round_robin(self):
        self.bridge(("a",), addresses=("h:1", "h:2"), round_robin=True, restart_timeout=5)
        for port in (1, 2, 1):
            self.assertEqual(self.network.addresses[-1], ("h", port))
            remote = self.remote()
            remote.leave()
            self.world.turn(3)
            self.wait(6)

    def test_it_leaves_in_order(self):
        self.bridge(("a/#",))
        remote = self.remote()
        self.world.loop.close()
        self.assertEqual(remote.packets(), [DISCONNECT])
        self.assertTrue(remote.stream.closed)
        self.assertEqual(self.one.text(), "waiting")
        self.broker.bridges.every.clear()

    def test_its_state_is_said_on_both_sides(self):
        name = "$SYS/broker/connection/edge/state"
        client = self.world.client("c")
        client.send(subscribe(1, name, 1))
        self.world.turn(2)
        self.bridge(("a/#",), notifications=True)
        remote = self.remote()
        self.assertEqual(
            self.connect, [as_bridge(connect("edge", False, (name, b"0", 1, True), 60))]
        )
        self.assertEqual(remote.packets(), [publish(name, b"1", retain=True)])
        remote.leave()
        self.world.turn(3)
        client.answer()
        self.assertEqual(
            client.messages, [(name.encode(), each, 1) for each in (b"0", b"1", b"0")]
        )
        publishing.send(self.broker, name.encode(), b"", 0, True)

    def test_the_other_broker_has_state_0_after_it_has_left_in_order(self):
        name = "$SYS/broker/connection/edge/state"
        for version, end in (("mqttv311", b""), ("mqttv50", b"\0")):
            self.start()
            self.bridge(
                ("a", "out", 1),
                notifications=True,
                start_type="lazy",
                threshold=1,
                idle_timeout=1,
                bridge_protocol_version=version,
            )
            self.broker.publish("a", b"x", 1)
            self.wait(1)
            remote = self.remote(ACCEPTED + end if not end else b"\x20\x03\0\0\0")
            said = b"\x31" + bytes((3 + len(name) + len(end),)) + b"\0" + bytes((len(name),))
            said += name.encode() + end
            packets = remote.packets()
            self.assertIn(said + b"1", packets)
            packet_id = [data for data in packets if data[0] >> 4 == 3 and data[0] & 6]
            remote.send(ack(PUBACK, read_publish(packet_id[0])[3]))
            self.wait(3)
            self.assertEqual(remote.packets(), [said + b"0", DISCONNECT], version)
            publishing.send(self.broker, name.encode(), b"", 0, True)
            if not end:
                self.tearDown()

    def test_a_state_topic_of_its_own_and_only_here(self):
        for number, local_only in enumerate((False, True)):
            client = self.world.client("c")
            client.send(subscribe(1, "state/#", 1))
            self.world.turn(2)
            options = {"notification_topic": "state/up", "notifications_local_only": local_only}
            one = self.bridge(
                ("a/#",), notifications=True, remote_clientid=f"c{number}", **options
            )
            remote = self.remote()
            there = [] if local_only else [publish("state/up", b"1", retain=True)]
            self.assertEqual(remote.packets(), there)
            self.assertEqual(b"state/up" in self.connect[0], not local_only)
            client.answer()
            self.assertEqual([text for _, text, _ in client.messages], [b"0", b"1"])
            publishing.send(self.broker, b"state/up", b"", 0, True)
            one.due = 1 << 29
            self.broker.end(one.conn, 9)
            client.leave()
            self.world.turn(6)
            publishing.send(self.broker, b"state/up", b"", 0, True)

    def test_the_ids_on_both_sides_and_the_address_that_it_connects_from(self):
        name = host_name() + ".up"
        for options, there, here in (
            ({"remote_clientid": None}, name, "local." + name),
            ({"remote_clientid": "far"}, "far", "local.far"),
            ({"remote_clientid": "far", "local_clientid": "near"}, "far", "near"),
        ):
            one = self.bridge(("a/#",), bridge_bind_address="192.0.2.5", **options)
            self.remote()
            self.assertEqual(self.connect, [as_bridge(connect(there, False, keep_alive=60))])
            self.assertEqual(self.network.bind, "192.0.2.5")
            names = self.broker.sessions.names
            self.assertEqual(names.read(one.session, self.broker.work, 0), len(here))
            self.assertEqual(self.broker.work[: len(here)], here.encode())
            self.assertEqual(one.text(), "up")
            if here != "near":
                self.tearDown()
                self.start(Limits(**self.LIMITS))


class TestMessages(BridgeCase):
    LIMITS = {"deliveries": 40, "queued": 30}  # noqa: RUF012

    def test_out_with_each_qos_and_retain(self):
        self.bridge(("a/#", "out", 2))
        remote = self.remote()
        client = self.world.client("c")
        client.send(publish("a/0", b"0") + publish("a/1", b"1", 1, 1, retain=False))
        client.send(publish("a/2", b"2", 2, 2) + publish("b", b"not this") + ack(PUBREL, 2))
        self.world.turn(3)
        self.deliver(remote)
        wanted = [(b"a/0", b"0", 0), (b"a/1", b"1", 1), (b"a/2", b"2", 2)]
        self.assertEqual(sorted(remote.messages), wanted)
        client.send(publish("a/r", b"r", 0, retain=True))
        self.world.turn(3)
        self.assertEqual(remote.packets(), [publish("a/r", b"r", retain=True)])
        client.send(publish("a/r", b"", 0, retain=True))
        self.world.turn(3)
        self.assertEqual(remote.packets(), [publish("a/r", b"", retain=True)])

    def test_in_and_no_echo(self):
        self.bridge(("#", "both", 2))
        remote = self.remote()
        self.subacks(remote)
        client = self.world.client("c")
        client.send(subscribe(1, "#", 2))
        self.world.turn(2)
        remote.send(publish("x", b"0") + publish("x", b"1", 1, 1) + publish("x", b"2", 2, 2))
        self.world.turn(3)
        found = remote.packets()
        self.assertEqual(found, [ack(PUBACK, 1), ack(PUBREC, 2)])
        remote.send(ack(PUBREL, 2))
        self.world.turn(2)
        self.assertEqual(remote.packets(), [ack(PUBCOMP, 2)])
        for _ in range(4):
            client.answer()
            self.world.turn()
        self.assertEqual(sorted(client.messages), [(b"x", b"%d" % k, k) for k in range(3)])

    def test_a_broker_that_knows_no_bridges_sends_it_back_once(self):
        """Then it is here twice, and does not go round."""
        self.bridge(("#", "both", 1), try_private=False)
        remote = self.remote()
        self.subacks(remote)
        client = self.world.client("c")
        client.send(subscribe(1, "#", 0) + publish("a", b"x", 1, 5))
        self.world.turn(3)
        (data,) = remote.packets()
        remote.send(ack(PUBACK, read_publish(data)[3]) + publish("a", b"x", 1, 7))
        self.world.turn(6)
        self.assertEqual(remote.packets(), [ack(PUBACK, 7)])
        found = [data for data in client.packets() if data[0] >> 4 == 3]
        self.assertEqual(found, [publish("a", b"x")] * 2)

    def test_what_nobody_asked_for_keeps_its_topic_and_needs_the_same_rights(self):
        rules = scratch.write("topic read #\nuser u\ntopic here/#\n")
        for user, wanted in ((None, ["here/in", "other"]), ("u", ["here/in"])):
            self.start(acl_file=rules)
            self.bridge(("in", "in", 1, "here/", "there/"), local_username=user)
            remote = self.remote()
            self.subacks(remote)
            client = self.world.client("c")
            client.send(subscribe(1, "#", 0))
            self.world.turn(2)
            remote.send(publish("there/in", b"x", 1, 1) + publish("other", b"x", 1, 2))
            self.world.turn(4)
            self.assertEqual(remote.packets(), [ack(PUBACK, 1), ack(PUBACK, 2)])
            found = [read_publish(data)[0].decode() for data in client.packets()[1:]]
            self.assertEqual(found, wanted)
            if not user:
                self.tearDown()

    def test_requests_come_in_only_by_a_topic_that_names_them(self):
        """Else whoever may publish below a prefix there would rule here."""
        own = "$SLOTMQ/time", "$SLOTMQ/record/b/get", "$SYS/broker/connection/up/state"
        ways = [(("#", "both", 1, "", "r/"), ""), (("#", "in", 1), "")]
        ways += [(("$SLOTMQ/time", "in", 1, "", "r/"), own[0]), ((own[0], "in", 1), own[0])]
        ways += [(("time", "in", 1, "$SLOTMQ/", "r/"), own[0]), (("$SYS/#", "in", 1), own[2])]
        for version in ("mqttv311", "mqttv50"):
            for way, wanted in ways:
                self.start()
                lines = []
                self.broker.log = lambda bit, text, lines=lines: lines.append(text)
                self.broker.log_mask = 4
                self.bridge(way, bridge_protocol_version=version)
                is_5 = version == "mqttv50"
                remote = self.remote(b"\x20\3\0\0\0" if is_5 else ACCEPTED)
                client = self.world.client("c")
                for name in ("$SLOTMQ/#", "$SYS/broker/connection/#"):
                    client.send(subscribe(1, name, 0))
                self.world.turn(3)
                client.packets()
                for name in own:
                    for sent in (name, "r/" + name, "r/" + name.split("/")[-1]):
                        if is_5:
                            remote.send(packets5.publish(sent, b"{}", 0))
                        else:
                            remote.send(publish(sent, b"{}"))
                        self.world.turn(3)
                seen = {read_publish(data)[0].decode() for data in client.packets()}
                self.assertEqual(seen, {wanted} - {""}, way)
                denied = [text for text in lines if text.startswith("Denied PUBLISH")]
                self.assertEqual(len(denied), 1, lines)
                self.tearDown()
        self.start()

    def test_out_without_retain(self):
        self.broker.publish("a", b"kept", 0, True)
        self.bridge(("a", "out", 1), bridge_outgoing_retain=False)
        remote = self.remote()
        self.broker.publish("a", b"new", 0, True)
        self.world.turn(2)
        self.assertEqual(remote.packets(), [publish("a", b"kept"), publish("a", b"new")])
        self.broker.publish("a", b"", 0, True)

    def test_a_topic_that_is_too_long_is_dropped_and_does_not_come_again(self):
        lines = []
        self.broker.log = lambda bit, text: lines.append(text)
        self.broker.log_mask = 2
        for number, prefix in enumerate(("", "p/")):
            self.bridge(("#", "in", 2, prefix), remote_clientid=f"c{number}")
            remote = self.remote()
            self.subacks(remote)
            for size in (257, 300):
                topic = "t" * size
                remote.send(publish(topic, b"0") + publish(topic, b"1", 1, 5))
                remote.send(publish(topic, b"2", 2, 6))
                self.world.turn(3)
                self.assertEqual(remote.packets(), [ack(PUBACK, 5), ack(PUBREC, 6)])
                remote.send(ack(PUBREL, 6))
                self.world.turn(2)
                self.assertEqual(remote.packets(), [ack(PUBCOMP, 6)])
        self.assertEqual(self.broker.stats[4], 12)
        text = "Bridge 'up': dropped: a topic of %d bytes, limit topic_bytes."
        self.assertEqual(lines, [text % 257, text % 259])
        client = self.world.client("c")
        client.send(publish("t" * 257, b""))
        self.world.turn(3)
        self.assertTrue(client.stream.closed)

    def test_prefixes(self):
        self.bridge(("t/#", "both", 1, "here/", "over/there/"))
        remote = self.remote()
        self.assertEqual(self.subacks(remote), [subscribe(65500, "over/there/t/#", 1)])
        client = self.world.client("c")
        client.send(subscribe(1, "here/#", 1))
        self.world.turn(2)
        client.packets()
        large = b"x" * 1500  # more than a buffer
        client.send(publish("here/t/1", large, 1, 5) + publish("here/t/0", b""))
        self.world.turn(8)
        remote.send(publish("over/there/t/in", large, 1, 9) + PINGRESP)
        self.deliver(remote, 12)
        self.assertEqual(
            sorted(remote.messages), [(b"over/there/t/0", b"", 0), (b"over/there/t/1", large, 1)]
        )
        for _ in range(4):
            client.answer()
            self.world.turn(2)
        self.assertIn((b"here/t/in", large, 1), client.messages)

    def test_what_waits_passes_in_order(self):
        self.network.down.add(1883)
        self.bridge(("a", "out", 2))
        client = self.world.client("c")
        for k in range(12):
            client.send(publish("a", b"%d" % k, 1, k + 1))
            self.world.turn(2)
        self.network.down.clear()
        self.dialled()
        remote = self.remote()
        self.deliver(remote, 20)
        self.assertEqual(remote.messages, [(b"a", b"%d" % k, 1) for k in range(12)])
        self.assertEqual(self.broker.sessions.queued[self.one.session], 0)

    def test_after_a_cut_all_comes_again_with_dup_and_the_same_ids_in_order(self):
        self.bridge(("a", "out", 2))
        remote = self.remote()
        for k, qos in enumerate((1, 2, 2, 1)):
            self.broker.publish("a", b"%d" % k, qos)
        self.world.turn(2)
        sent = remote.packets()
        ids = [read_publish(data)[3] for data in sent]
        remote.send(ack(PUBREC, ids[1]))  # the second one is released; its PUBREL is lost
        self.world.turn(2)
        remote = self.lose(remote)
        again = remote.packets()
        wanted = [publish("a", b"0", 1, ids[0], dup=True), ack(PUBREL, ids[1])]
        wanted += [
            publish("a", b"2", 2, ids[2], dup=True),
            publish("a", b"3", 1, ids[3], dup=True),
        ]
        self.assertEqual(again, wanted)
        remote.send(ack(PUBACK, ids[0]) + ack(PUBCOMP, ids[1]) + ack(PUBREC, ids[2]))
        remote.send(ack(PUBACK, ids[3]))
        self.world.turn(2)
        self.assertEqual(remote.packets(), [ack(PUBREL, ids[2])])
        remote.send(ack(PUBCOMP, ids[2]))
        self.world.turn(2)
        self.assertEqual(self.broker.deliveries.count[0], 0)

    def test_ids_that_the_other_broker_has_forgotten_are_free(self):
        for qos2 in ("receive", "release"):
            self.start(qos2_delivery=qos2)
            self.bridge(("a", "in", 2))
            client = self.world.client("c")
            client.send(subscribe(1, "a", 0))
            self.world.turn(2)
            client.packets()
            remote = self.remote()
            self.subacks(remote)
            remote.send(publish("a", b"first", 2, 7))
            self.world.turn(2)
            remote = self.lose(remote, RESUMED)
            remote.send(publish("a", b"first", 2, 7, dup=True))
            self.world.turn(2)
            remote = self.lose(remote, ACCEPTED)
            remote.send(publish("a", b"second", 2, 7) + ack(PUBREL, 7))
            self.world.turn(3)
            found = [read_publish(data)[1] for data in client.packets()]
            self.assertEqual(found, [b"first", b"second"], qos2)
            if qos2 == "receive":
                self.tearDown()

    def test_mqtt_3_1_does_not_say_whether_the_session_is_there(self):
        """Then what has been received is still known: it comes once."""
        self.bridge(("a", "in", 2), bridge_protocol_version="mqttv31")
        client = self.world.client("c")
        client.send(subscribe(1, "a", 0))
        self.world.turn(2)
        client.packets()
        remote = self.remote()
        remote.send(publish("a", b"once", 2, 7))
        self.world.turn(2)
        remote = self.lose(remote, ACCEPTED)
        remote.send(publish("a", b"once", 2, 7, dup=True) + ack(PUBREL, 7))
        remote.send(publish("a", b"next", 2, 7))
        self.world.turn(3)
        found = [read_publish(data)[1] for data in client.packets()]
        self.assertEqual(found, [b"once", b"next"])

    def test_retained_messages_go_to_a_broker_that_has_not_had_them(self):
        self.broker.publish("a", b"kept", 0, True)
        self.bridge(("a", "out", 1))
        remote = self.remote(RESUMED)
        self.assertEqual(remote.packets(), [publish("a", b"kept", retain=True)])
        remote = self.lose(remote, RESUMED)
        self.assertEqual(remote.packets(), [])
        remote = self.lose(remote, ACCEPTED)
        self.assertEqual(remote.packets(), [publish("a", b"kept", retain=True)])
        self.broker.publish("a", b"", 0, True)

    def test_a_clean_session_here_ends_with_the_connection(self):
        self.bridge(("a", "out", 1), cleansession=True)
        self.assertEqual(self.broker.sessions.names.count(), 0)
        remote = self.remote()
        remote.leave()
        self.world.turn(3)
        self.broker.publish("a", b"lost", 1)
        self.wait(11)
        remote = self.remote()
        self.assertEqual(remote.packets(), [])

    def test_each_side_keeps_its_session_or_does_not(self):
        """cleansession is there, local_cleansession here."""
        for there, here, kept in ((True, False, [(b"a", b"x", 1)]), (False, True, [])):
            self.bridge(("a", "out", 1), cleansession=there, local_cleansession=here)
            remote = self.remote()
            self.assertEqual(self.connect[0][9] & 2, 2 * there)
            remote.leave()
            self.network.down.add(1883)
            self.wait(2)
            self.broker.publish("a", b"x", 1)
            self.network.down.clear()
            self.dialled()
            remote = self.remote()
            self.deliver(remote)
            self.assertEqual(remote.messages, kept)
            if there:
                self.tearDown()
                self.start(Limits(**self.LIMITS))

    def test_subscriptions_of_an_earlier_configuration_go(self):
        self.bridge(("a", "out", 1), ("b", "out", 1))
        one = self.one
        one.outs.pop(0)
        self.remote()
        self.assertEqual(self.broker.subscriptions.count, 1)


class TestLosses(BridgeCase):
    """rt-thread-losses, with the bridge as the sender and as the receiver."""

    def test_as_the_sender(self):
        for loss in range(6):
            self.start()
            self.bridge(("a", "out", 2))
            remote = self.remote()
            heard = self.lose_as_sender(loss, remote)
            self.assertEqual(heard, [(b"a", b"once", 2)], loss)
            self.assertEqual(self.broker.deliveries.count[0], 0)
            if loss < 5:
                self.tearDown()

    def lose_as_sender(self, loss, remote):
        heard = []
        self.broker.publish("a", b"once", 2)
        if loss == 0:  # PUBLISH: the other broker has not read it
            remote.packets()
            remote = self.lose(remote)
        self.world.turn(2)
        if loss == 1:  # PUBREC
            remote.receive()
            heard += remote.messages
            remote.stream.sent = bytearray()
            remote = self.lose(remote)
        self.world.turn()
        remote.receive()
        if loss == 2:  # PUBREC comes twice
            remote.stream.sent += bytes(remote.stream.sent)
        self.world.turn()
        if loss == 3:  # PUBREL
            remote.packets()
            heard += remote.messages
            remote = self.lose(remote)
        remote.receive()
        if loss == 4:  # PUBCOMP comes twice
            remote.stream.sent += bytes(remote.stream.sent)
        if loss == 5:  # PUBCOMP
            heard += remote.messages
            remote.stream.sent = bytearray()
            remote = self.lose(remote)
        self.deliver(remote)
        return heard + remote.messages

    def test_as_the_receiver(self):
        for qos2 in ("receive", "release"):
            for loss in range(4):
                self.start(qos2_delivery=qos2)
                self.bridge(("a", "in", 2))
                client = self.world.client("c")
                client.send(subscribe(1, "a", 0))
                self.world.turn(2)
                client.packets()
                remote = self.remote()
                self.lose_as_receiver(loss, remote)
                self.world.turn(2)
                found = [read_publish(data)[:2] for data in client.packets()]
                self.assertEqual(found, [(b"a", b"once")], (qos2, loss))
                if (qos2, loss) != ("release", 3):
                    self.tearDown()

    def lose_as_receiver(self, loss, remote):
        message = publish("a", b"once", 2, 7)
        if loss == 0:  # half a PUBLISH
            remote.send(message[:6])
            remote = self.lose(remote)
        remote.send(message)
        self.world.turn(2)
        if loss == 1:  # PUBREC
            remote = self.lose(remote)
            remote.send(publish("a", b"once", 2, 7, dup=True))
        if loss == 2:  # half a PUBREL
            remote.send(ack(PUBREL, 7)[:3])
            self.world.turn(2)
            remote = self.lose(remote)
        remote.send(ack(PUBREL, 7))
        self.world.turn(2)
        if loss == 3:  # PUBCOMP
            remote = self.lose(remote)
            remote.send(ack(PUBREL, 7))
        self.world.turn(2)
        self.assertIn(ack(PUBCOMP, 7), remote.packets())


class TestItsPlace(BridgeCase):
    LIMITS = {"connections": 2, "sessions": 2, "bridges": 3}  # noqa: RUF012

    def test_no_crowd_takes_its_connection(self):
        self.bridge(("a", "out", 1))
        remote = self.remote()
        self.world.client("c1")
        refused = self.come(connect("c2"))
        self.assertEqual(refused.packets(), [b"\x20\x02\0\3"])
        crowd = [self.come(b"") for _ in range(4)]
        remote = self.lose(remote)
        self.broker.publish("a", b"x", 1)
        self.deliver(remote)
        self.assertEqual(remote.messages, [(b"a", b"x", 1)])
        for each in crowd:
            each.leave()
        self.world.turn(12)

    def test_its_session_is_no_clients_and_is_not_evicted(self):
        for policy in ("drop_empty", "drop_oldest"):
            self.start(Limits(**self.LIMITS), when_full={"sessions": policy})
            self.network.down.add(1883)
            self.bridge(("a", "out", 1))
            taker = self.come(connect("local.edge", clean=True))
            self.assertEqual(taker.packets(), [b"\x20\x02\0\2"])
            for name in ("c1", "c2", "c3"):
                client = self.world.client(name, clean=True)
                client.leave()
                self.world.turn(3)
            self.assertEqual(self.broker.subscriptions.count, 1)
            if policy == "drop_empty":
                self.tearDown()

    def test_beside_a_listener_that_speaks_websocket(self):
        loop = self.world.loop
        acceptor(loop, self.world.listener.accept, {})  # its clients' pipes are no streams
        self.bridge(("a", "out", 1))
        remote = self.remote()
        self.broker.publish("a", b"x", 1)
        self.deliver(remote)
        self.assertEqual(remote.messages, [(b"a", b"x", 1)])

    def test_two_bridges(self):
        self.bridge(("a", "out", 1))
        remote = self.remote()
        with self.assertRaises(ValueError):
            self.bridge(("a", "out", 1))
        self.bridge(("a", "out", 1), remote_clientid="second")
        second = self.remote()
        with self.assertRaises(OSError) as caught:
            self.bridge(("b", "out", 1), remote_clientid="third")
        self.assertEqual(caught.exception.args[1], "full: limit connections, sessions, users")
        self.broker.publish("a", b"x", 1)
        for each in (remote, second):
            self.deliver(each)
            self.assertEqual(each.messages, [(b"a", b"x", 1)])


class TestLimits(BridgeCase):
    LIMITS = {"bridges": 2, "bridge_topics": 3}  # noqa: RUF012

    def test_no_more_bridges_and_topics_than_the_limits(self):
        self.bridge(("a",), ("b", "in"), remote_clientid="first")
        with self.assertRaises(OSError) as caught:
            self.bridge(("a",), ("b",), remote_clientid="second")
        self.assertEqual(caught.exception.args[1], "full: limit bridge_topics")
        self.bridge(("a",), remote_clientid="second")
        with self.assertRaises(OSError) as caught:
            self.bridge(("a",), remote_clientid="third")
        self.assertEqual(caught.exception.args[1], "full: limit bridges")
        self.assertEqual(self.broker.sessions.names.count(), 2)


class TestBridgesOfOthers(BridgeCase):
    """A client that says it is a bridge: protocol level 0x83 or 0x84."""

    def test_no_echo_and_retain_as_published(self):
        bridge = self.come(as_bridge(connect("b")))
        self.assertEqual(bridge.packets(), [ACCEPTED])
        bridge.send(subscribe(1, "#", 0) + publish("a", b"own"))
        client = self.world.client("c")
        client.send(publish("a", b"others", retain=True) + publish("a", b"", retain=True))
        self.world.turn(3)
        found = bridge.packets()[1:]
        wanted = [publish("a", b"others", retain=True), publish("a", b"", retain=True)]
        self.assertEqual(found, wanted)

    def test_its_session_as_a_clients_is_an_ordinary_one(self):
        bridge = self.come(as_bridge(connect("b", False)))
        bridge.leave()
        self.world.turn(3)
        client = self.come(connect("b", False))
        client.send(subscribe(1, "x", 0) + publish("x", b"own"))
        self.world.turn(3)
        self.assertEqual(client.packets()[-1], publish("x", b"own"))

    def test_mqtt_3_1_and_levels_that_are_none(self):
        old = connect("b", level=3).replace(b"MQIsdp\x03", b"MQIsdp\x83")
        self.assertEqual(self.come(old).packets(), [b"\x20\x02\0\0"])
        for level in (0x80, 0x85, 0x86):
            refused = self.come(as_bridge(connect("b"), level))
            self.assertEqual(refused.packets(), [b"\x20\x02\0\1"])

    def test_it_may_say_its_state(self):
        name = "$SYS/broker/connection/b/state"
        reader = self.world.client("r")
        reader.send(subscribe(1, "$SYS/broker/connection/#", 0))
        bridge = self.come(as_bridge(connect("b", will=(name, b"0", 0))))
        bridge.send(publish(name, b"1") + publish("$SYS/broker/x", b"1"))
        other = self.world.client("o")
        other.send(publish(name, b"2"))
        self.world.turn(3)
        bridge.leave()
        self.world.turn(3)
        found = [read_publish(data)[:2] for data in reader.packets()[1:]]
        self.assertEqual(found, [(name.encode(), b"1"), (name.encode(), b"0")])

    def test_twenty_messages_are_under_way(self):
        """mosquitto drops a further one of QoS 2, and answers PUBREC."""
        large = Limits(connections=8, queued=200, deliveries=400, messages=200, inflight=100)
        old = connect("b", False, level=3).replace(b"MQIsdp\x03", b"MQIsdp\x83")
        new = as_bridge(connect("b", False))
        client = connect("b", False)
        for first, most, wanted in ((new, 0, 20), (old, 0, 20), (new, 40, 40), (client, 0, 60)):
            for qos in (1, 2):
                self.start(large, max_inflight_messages=most)
                bridge = self.come(first)
                bridge.send(subscribe(1, "t", 2))
                self.world.turn(3)
                if qos == 2:  # they wait for it
                    bridge.leave()
                    self.world.turn(3)
                client = self.world.client("c")
                for number in range(60):
                    client.send(publish("t", b"%d" % number, qos, 1 + number))
                    if qos == 2:
                        client.send(ack(PUBREL, 1 + number))
                    self.world.turn()
                if qos == 2:
                    bridge = self.come(first)
                bridge = Remote(bridge.stream)
                self.world.turn(30)
                under_way = [data for data in bridge.packets() if data[0] >> 4 == 3]
                self.assertEqual(len(under_way), wanted, (first, qos))
                for data in under_way:
                    packet_id = read_publish(data)[3]
                    bridge.send(ack(PUBACK if qos == 1 else PUBREC, packet_id))
                    bridge.held.add(packet_id)
                    bridge.messages.append(read_publish(data)[:3])
                self.deliver(bridge, 80)
                found = [int(payload) for _, payload, _ in bridge.messages]
                self.assertEqual(found, list(range(60)))
                self.tearDown()
        self.start()

    def test_twenty_without_the_code_of_5_0(self):
        """A bridge is refused as one, and comes as a client: nothing says what it takes."""
        large = Limits(connections=8, queued=200, deliveries=400, messages=200, inflight=100)
        for most, wanted in ((0, 20), (40, 40)):
            self.start(large, max_inflight_messages=most, mqtt_versions=3)
            self.assertEqual(self.come(as_bridge(connect("b"))).packets(), [b"\x20\2\0\1"])
            self.come(connect("b", False) + subscribe(1, "t", 2)).leave()
            self.world.turn(3)
            client = self.world.client("c")
            for number in range(1, 61):
                client.send(publish("t", b"x", 2, number) + ack(PUBREL, number))
                self.world.turn()
            bridge = self.come(connect("b", False))
            self.world.turn(30)
            under_way = [data for data in bridge.packets() if data[0] >> 4 == 3]
            self.assertEqual(len(under_way), wanted)
            self.tearDown()
        self.start()

    def test_one_of_mqtt_3_1_may_repeat_with_dup(self):
        old = connect("b", level=3).replace(b"MQIsdp\x03", b"MQIsdp\x83")
        bridge = self.come(old + publish("t", b"x", 2, 7))
        bridge.send(packet(0x6A, b"\0\7") + packet(0x8A, subscribe(3, "t", 0)[2:]))
        self.world.turn(3)
        found = bridge.packets()[1:]
        self.assertEqual(found, [ack(PUBREC, 7), ack(PUBCOMP, 7), packet(0x90, b"\0\3\0")])

    def test_without_mqtt_5_it_is_asked_to_come_as_a_client(self):
        self.start(mqtt_versions=3)
        self.assertEqual(self.come(as_bridge(connect("b"))).packets(), [b"\x20\x02\0\1"])
        with self.assertRaises(ValueError):
            self.bridge(("a",))

"""A bridge's place among the connections and sessions, what is said of its state, and clients that
say that they are bridges."""

from bridge_case import (
    ACCEPTED,
    BridgeCase,
    Remote,
    accept,
    as_bridge,
    payloads,
)
from packets import (
    DISCONNECT,
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
from slotmq.net.websocket import acceptor
from slotmq.platform.dial import host_name

STATE = "$SYS/broker/connection/edge/state"
ONCE = [(b"a", b"x", 1)]
FIVE = {"bridge_protocol_version": "mqttv50"}


class TestItsPlace(BridgeCase):
    LIMITS = {"connections": 2, "sessions": 2, "bridges": 3, "bridge_topics": 3}  # noqa: RUF012

    def passes(self, remote):
        """A message goes out."""
        self.broker.publish("a", b"x", 1)
        self.deliver(remote)
        self.assertEqual(remote.messages, ONCE)

    def test_no_crowd_takes_its_connection(self):
        self.bridge(("a", "out", 1))
        remote = self.remote()
        self.world.client("c1")
        refused = self.come(connect("c2"))
        self.assertEqual(refused.packets(), [b"\x20\x02\0\3"])
        crowd = [self.come(b"") for _ in range(4)]
        self.passes(self.lose(remote))
        for each in crowd:
            each.leave()
        self.world.turn(12)

    def test_its_session_is_no_clients_and_is_not_evicted(self):
        for policy in self.each("drop_empty", "drop_oldest"):
            self.start(when_full={"sessions": policy})
            self.network.down.add(1883)
            self.bridge(("a", "out", 1))
            taker = self.come(connect("local.edge", clean=True))
            self.assertEqual(taker.packets(), [b"\x20\x02\0\2"])
            for name in ("c1", "c2", "c3"):
                client = self.world.client(name, clean=True)
                client.leave()
                self.world.turn(3)
            self.assertEqual(self.broker.subscriptions.count, 1)

    def test_beside_a_listener_that_speaks_websocket(self):
        loop = self.world.loop
        acceptor(loop, self.world.listener.accept, {})  # its clients' pipes are no streams
        self.bridge(("a", "out", 1))
        self.passes(self.remote())

    def test_no_more_bridges_and_topics_than_the_limits(self):
        large = {"connections": 4, "sessions": 4}
        a, b = ("a", "out", 1), ("b", "in")
        for change, count, topics, full in self.each(
            ({}, 2, [a], "connections, sessions, users"),
            (large, 1, [a, b], "bridge_topics"),
            (large | {"bridges": 2}, 2, [a], "bridges"),
        ):
            self.start(Limits(**self.LIMITS | change))
            remotes = []
            for number in range(count):
                self.bridge(*topics, remote_clientid=f"c{number}")
                remotes.append(self.remote())
            with self.assertRaises(OSError) as caught:
                self.bridge(*topics, remote_clientid="c9")
            self.assertEqual(caught.exception.args[1], "full: limit " + full)
            self.broker.publish("a", b"x", 1)
            for remote in remotes:
                self.deliver(remote)
                self.assertEqual(remote.messages, ONCE)

    def test_a_client_id_that_another_bridge_has(self):
        self.bridge(("a", "out", 1))
        with self.assertRaises(ValueError):
            self.bridge(("a", "out", 1))

    def test_the_ids_on_both_sides_and_the_address_that_it_connects_from(self):
        name = host_name() + ".up"
        for options, there, here in self.each(
            ({"remote_clientid": None}, name, "local." + name),
            ({"remote_clientid": "far"}, "far", "local.far"),
            ({"remote_clientid": "far", "local_clientid": "near"}, "far", "near"),
        ):
            one = self.bridge(("a/#",), bridge_bind_address="192.0.2.5", **options)
            self.remote()
            self.assertEqual(self.connect, [as_bridge(connect(there, False, keep_alive=60))])
            self.assertEqual(self.network.bind, "192.0.2.5")
            self.assertEqual(self.broker.sessions.client_id(one.session), here.encode())

    def test_a_clean_session_here_ends_with_the_connection(self):
        """cleansession is there, local_cleansession here; without it both are."""
        for options, kept in self.each(
            ({"cleansession": True, "local_cleansession": False}, ONCE),
            ({"cleansession": False, "local_cleansession": True}, []),
            ({"cleansession": True}, []),
        ):
            self.bridge(("a", "out", 1), **options)
            self.assertEqual(self.broker.sessions.names.count(), len(kept))
            remote = self.remote()
            self.assertEqual(self.connect[0][9] & 2, 2 * options["cleansession"])
            self.network.down.add(1883)
            remote.leave()
            self.wait(2)
            self.broker.publish("a", b"x", 1)
            self.network.down.clear()
            self.dialled()
            remote = self.remote()
            self.deliver(remote)
            self.assertEqual(remote.messages, kept)

    def test_subscriptions_of_an_earlier_configuration_go(self):
        self.bridge(("a", "out", 1), ("b", "out", 1))
        self.one.outs.pop(0)
        self.remote()
        self.assertEqual(self.broker.subscriptions.count, 1)

    def test_a_lazy_one_comes_when_its_queue_is_full_though_few_messages_wait(self):
        """Its part of the messages' bytes, or of the deliveries that others fill."""
        limits = {"queued": 20, "deliveries": 40, "messages": 40}
        for size in self.each(100, 700, 1200):
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
        self.start(Limits(**limits), max_offline_share=10)
        self.bridge(("a", "out", 1), start_type="lazy")
        self.reader("o", qos=1)
        for _ in range(8):
            self.broker.publish("o", b"", 1)
        self.world.turn(2)
        self.broker.publish("a", b"x", 1)
        self.wait(1)
        self.assertEqual((self.one.refusals, len(self.network.streams)), ({"out/full": 1}, 1))


class TestState(BridgeCase):
    """What is said here and there of its state."""

    def test_on_both_sides_or_only_here(self):
        for options, topic, there in self.each(
            ({}, STATE, True),
            ({"notification_topic": "state/up"}, "state/up", True),
            ({"notification_topic": "s", "notifications_local_only": True}, "s", False),
            ({"notifications": False}, STATE, None),
        ):
            client = self.reader(topic, qos=1)
            self.bridge(("a/#",), **{"notifications": True} | options)
            remote = self.remote()
            self.assertEqual(topic.encode() in self.connect[0], bool(there))
            self.assertEqual(remote.packets(), [publish(topic, b"1", retain=True)] * bool(there))
            remote.leave()
            self.world.turn(3)
            client.answer()
            wanted = [(topic.encode(), each, 1) for each in (b"0", b"1", b"0")]
            self.assertEqual(client.messages, [] if there is None else wanted)

    def test_the_other_broker_has_state_0_after_it_has_left_in_order(self):
        lazy = {"start_type": "lazy", "threshold": 1, "idle_timeout": 1}
        for version, answer, properties in self.each(
            ("mqttv311", ACCEPTED, None), ("mqttv50", accept(), b"")
        ):
            self.bridge(
                ("a", "out", 1), notifications=True, bridge_protocol_version=version, **lazy
            )
            self.broker.publish("a", b"x", 1)
            self.wait(1)
            remote = self.remote(answer)
            said = [
                publish(STATE, text, retain=True, properties=properties) for text in (b"1", b"0")
            ]
            packets = remote.packets()
            self.assertIn(said[0], packets)
            (sent,) = [data for data in packets if data[0] & 0xF6 == 0x32]
            remote.send(ack(PUBACK, sent[5] << 8 | sent[6]))
            self.wait(3)
            self.assertEqual(remote.packets(), [said[1], DISCONNECT], version)

    def test_it_leaves_in_order(self):
        for options, answer in self.each(({}, ACCEPTED), (FIVE, accept())):
            self.bridge(("a/#",), **options)
            remote = self.remote(answer)
            self.world.loop.close()
            self.assertEqual(remote.packets(), [DISCONNECT])
            self.assertEqual((remote.stream.closed, self.one.text()), (True, "waiting"))
            self.broker.bridges.every.clear()

    def test_each_packet_of_the_other_broker_is_shown_as_the_bridges(self):
        self.broker.log_mask = 64
        self.bridge(("a/#",))
        self.wait(2)
        remote = self.remote()
        remote.send(PINGRESP)
        self.world.turn(3)
        found = [line for line in self.lines if line.startswith("Received")]
        self.assertEqual(found[0], "Received CONNACK from the bridge 'up' (4 bytes)")
        self.assertEqual(found[-1], "Received PINGRESP from the bridge 'up' (2 bytes)")


OLD = connect("b", False, level=3).replace(b"MQIsdp\x03", b"MQIsdp\x83")


class TestBridgesOfOthers(BridgeCase):
    """A client that says it is a bridge: protocol level 0x83 or 0x84."""

    def test_no_echo_and_retain_as_published(self):
        bridge = self.come(as_bridge(connect("b")))
        self.assertEqual(bridge.packets(), [ACCEPTED])
        bridge.send(subscribe(1, "#", 0) + publish("a", b"own"))
        client = self.world.client("c")
        client.send(publish("a", b"others", retain=True) + publish("a", b"", retain=True))
        self.world.turn(3)
        wanted = [publish("a", b"others", retain=True), publish("a", b"", retain=True)]
        self.assertEqual(bridge.packets()[1:], wanted)

    def test_its_session_as_a_clients_is_an_ordinary_one(self):
        self.come(as_bridge(connect("b", False))).leave()
        self.world.turn(3)
        client = self.come(connect("b", False))
        client.send(subscribe(1, "x", 0) + publish("x", b"own"))
        self.world.turn(3)
        self.assertEqual(client.packets()[-1], publish("x", b"own"))

    def test_levels(self):
        levels = [(as_bridge(connect("b"), level), 1) for level in (0x80, 0x85, 0x86)]
        for first, code in [(OLD, 0)] + levels:  # noqa: RUF005 - MicroPython
            self.assertEqual(self.come(first).packets(), [b"\x20\x02\0" + bytes((code,))])
        self.start(mqtt_versions=3)  # it is asked to come as a client
        self.assertEqual(self.come(as_bridge(connect("b"))).packets(), [b"\x20\x02\0\1"])
        with self.assertRaises(ValueError):
            self.bridge(("a",))

    def test_it_may_say_its_state(self):
        name = "$SYS/broker/connection/b/state"
        reader = self.reader("$SYS/broker/connection/#")
        bridge = self.come(as_bridge(connect("b", will=(name, b"0", 0))))
        bridge.send(publish(name, b"1") + publish("$SYS/broker/x", b"1"))
        other = self.world.client("o")
        other.send(publish(name, b"2"))
        self.world.turn(3)
        bridge.leave()
        self.world.turn(3)
        self.assertEqual(payloads(reader), [(name.encode(), b"1"), (name.encode(), b"0")])

    def test_twenty_messages_are_under_way(self):
        """mosquitto drops a further one of QoS 2, and answers PUBREC. Without the code of 5.0 a
        bridge comes as a client, and nothing says what it takes: then all clients get 20."""
        new, client = as_bridge(connect("b", False)), connect("b", False)
        for first, most, wanted, versions in self.each(
            (new, 0, 20, 5), (OLD, 0, 20, 5), (new, 40, 40, 5), (client, 0, 60, 5),
            (client, 0, 20, 3), (client, 40, 40, 3),
        ):  # fmt: skip
            for qos in (1, 2):
                self.under_way(first, most, wanted, versions, qos)
                self.tearDown()

    def under_way(self, first, most, wanted, versions, qos):
        large = {"connections": 8, "queued": 200, "deliveries": 400, "messages": 200}
        limits = Limits(inflight=100, **large)
        self.start(limits, max_inflight_messages=most, mqtt_versions=versions)
        bridge = self.come(first + subscribe(1, "t", 2))
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

    def test_one_of_mqtt_3_1_may_repeat_with_dup(self):
        bridge = self.come(OLD + publish("t", b"x", 2, 7))
        bridge.send(packet(0x6A, b"\0\7") + packet(0x8A, subscribe(3, "t", 0)[2:]))
        self.world.turn(3)
        found = bridge.packets()[1:]
        self.assertEqual(found, [ack(PUBREC, 7), ack(PUBCOMP, 7), packet(0x90, b"\0\3\0")])

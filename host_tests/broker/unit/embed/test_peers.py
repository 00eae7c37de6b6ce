"""Hooks with `with_peer`: who is the client that they are asked about, or told of?"""

import packets
from embed_case import EmbedCase
from packets import publish


class Hooks:
    with_peer = True

    def may_connect(self, client_id, user_name, password, peer):
        self.calls.append(("connect?", client_id, peer))
        return 0

    def may_publish(self, client_id, topic, peer):
        self.calls.append(("publish?", client_id, peer))
        return topic != b"denied"

    def may_subscribe(self, client_id, topic_filter, qos, peer):
        self.calls.append(("subscribe?", client_id, peer))
        return True

    def on_connect(self, client_id, peer):
        self.calls.append(("in", client_id, peer))

    def on_disconnect(self, client_id, reason, peer):
        self.calls.append(("out", client_id, peer))


class Watching:
    with_peer = True

    def on_publish(self, topic, payload, client_id, peer):
        self.calls.append((topic, client_id, peer and peer[0]))


class TestPeers(EmbedCase):
    LIMITS = {"connections": 6, "max_packet": 2048, "subscriptions": 16}  # noqa: RUF012

    def come(self, name, user, level=4, **options):
        properties = b"" if level == 5 else None
        data = packets.connect(name, username=user, level=level, properties=properties, **options)
        return self.world.come(data)

    def test_each_hook_gets_user_name_and_address(self):
        for level in (4, 5):
            hooks = Hooks()
            self.start(hooks)
            client = self.come("phone", "alice", level)
            properties = b"" if level == 5 else None
            client.send(packets.subscribe(1, "a", 0, properties))
            client.send(publish("a", b"x", 0, properties=properties))
            self.world.turn(3)
            client.leave()
            self.world.turn(3)
            kinds = ["connect?", "subscribe?", "publish?", "in", "out"]
            found = [each for each in hooks.calls if each[1] == b"phone"]
            self.assertEqual(sorted([each[0] for each in found]), sorted(kinds))
            self.assertEqual({each[2][0] for each in found}, {b"alice"})
            self.assertTrue(all(":" in each[2][1] for each in found))
            self.tearDown()

    def test_a_client_without_a_user_name_and_one_of_the_program(self):
        hooks = Hooks()
        self.start(hooks)
        self.come("phone", None)
        self.assertEqual({each[2][0] for each in hooks.calls}, {None})
        del hooks.calls[:]
        self.broker.client("own", user="logger").publish("a")
        self.assertEqual(hooks.calls, [("publish?", b"own", (b"logger", None))])

    def test_on_publish_is_told_who_has_published(self):
        for level in (4, 5):
            hooks = Watching()
            self.start(hooks)
            properties = b"" if level == 5 else None
            alice, bob = self.come("phone", "alice", level), self.come("tablet", "bob", level)
            for _ in range(3):
                alice.send(publish("a", b"x", 0, properties=properties))
                alice.send(publish("a", b"x", 1, 7, properties=properties))
                bob.send(publish("b", b"x", 2, 8, properties=properties))
                self.broker.publish("own", b"x")
                self.world.turn(3)
                bob.send(packets.ack(packets.PUBREL, 8))
                self.world.turn(3)
            expected = [("a", b"phone", b"alice")] * 6 + [("b", b"tablet", b"bob")] * 3
            expected += [("own", None, None)] * 3
            self.assertEqual(sorted(hooks.calls, key=str), sorted(expected, key=str))
            self.tearDown()

    def test_a_will_is_of_its_client(self):
        hooks = Watching()
        self.start(hooks)
        self.come("phone", "alice", will=("last", b"gone", 1)).stream.ended = True
        self.world.turn(4)
        self.assertEqual(hooks.calls, [("last", b"phone", None)])

"""AUTH: unknown methods, login by SCRAM-SHA-256, and authentication of a connected client."""

import pytest

from ..wire.scene import spec
from ..wire.vectors import wire
from . import codec
from .codec import AGAIN, CONTINUE, Connack, Will
from .scram import METHOD, SCRAM, Exchange, answer, begin, login

ABOUT = {"user": (("a", "b"), ("a", "c"))}


@spec(new="4.12.0-1 4.12.0-4 3.1.2-30 3.2.0-1 3.2.2-7")
@pytest.mark.parametrize("method", ["PLAIN", "scram-sha-256", "SCRAM-SHA-1", "", "Füße"])
@pytest.mark.parametrize("data", [None, b"", b"n,,n=user,r=abc"])
def test_an_unknown_method_is_refused(mqtt5, method, data):
    more = {} if data is None else {"auth_data": data}
    mqtt5.refuse(*mqtt5.codes(0x8C, 0x87), auth_method=method, **more)


@spec(new="4.12.0-7 4.12.0-6 4.13.1-1")
@pytest.mark.parametrize(
    "packet", ["f0 [ 19 [ 15 'SCRAM-SHA-256' ] ]", "f0 [ 18 [ 15 'X' 16 'd' ] ]", "f0 [ 19 ]"]
)
def test_without_a_method_at_connect_auth_is_an_error(mqtt5, packet):
    client = mqtt5.connect()
    client.send(wire(packet))
    client.expect_disconnect(*mqtt5.codes(0x82, 0x81))


class TestLogin:
    pytestmark = SCRAM

    @spec(new="4.12.0-2 4.12.0-3 4.12.0-5 3.15.2-1 3.2.0-1")
    def test_the_right_password_is_accepted(self, mqtt5, topic):
        client = login(mqtt5)
        client.subscribe(topic, qos=1)
        client.publish(topic, b"x", 1)
        client.receive(topic, b"x", 1)

    def test_the_properties_of_the_connect_hold_after_the_login(self, mqtt5, topic):
        will = Will(topic, b"gone", 1, properties={"content_type": "text"})
        witness = login(mqtt5, "witness")
        witness.subscribe(topic, qos=1)
        client = login(mqtt5, "me", session_expiry=60, will=will, keep_alive=60)
        client.subscribe(topic, qos=1)
        client.drop()
        witness.receive(topic, b"gone", 1, content_type="text")
        client = login(mqtt5, "me", clean=False)
        assert client.connack.session_present
        client.receive(topic, b"gone", 1, content_type="text")

    @spec(new="3.15.2-2 3.15.2-3")
    def test_it_respects_maximum_packet_size(self, mqtt5):
        login(mqtt5, maximum_packet_size=150, request_problem_info=0).expect_silence()

    @spec(new="4.12.0-4 3.1.4-2 4.13.2-1")
    @pytest.mark.parametrize(
        "who", [("user", "pencils"), ("user", ""), ("nobody", "pencil"), ("us,er=", "x")]
    )
    def test_a_wrong_user_or_password_is_refused(self, mqtt5, who):
        client, _, proof = begin(mqtt5, exchange=Exchange(*who))
        self.refused(client, proof)

    @pytest.mark.parametrize("end", [b"", b"nonsense", b"c=biws,r=x,p=AAAA", None])
    def test_a_malformed_proof_or_one_of_another_challenge_is_refused(self, mqtt5, end):
        _, _, old = begin(mqtt5)
        client, _, _ = begin(mqtt5)
        self.refused(client, old if end is None else end)

    @staticmethod
    def refused(client, proof):
        answer(client, proof)
        assert client.next() == Connack(False, 0x87)
        client.expect_last()

    @pytest.mark.parametrize("first", [None, b"", b"nonsense", b"p=tls-unique,,n=user,r=a"])
    def test_a_malformed_first_message_is_refused(self, mqtt5, first):
        more = {} if first is None else {"auth_data": first}
        mqtt5.refuse(0x87, auth_method=METHOD, **more)

    @spec(new="3.1.2-30 3.2.0-1 3.1.4-6")
    @pytest.mark.parametrize(
        "packet",
        ["c0 [ ]", "30 [ 't' [ ] ]", "82 [ 0001 [ ] 't' 00 ]",
         "10 [ 'MQTT' 05 02 0000 [ ] 'x' ]"],
    )  # fmt: skip
    def test_another_packet_during_the_login_ends_the_connection(self, mqtt5, packet):
        """A second CONNECT is answered with 0x82, the others not at all."""
        client, _, _ = begin(mqtt5)
        client.send(wire(packet))
        assert client.answer() == (Connack(False, 0x82) if packet.startswith("10") else None)
        client.expect_closed()

    @spec(new="4.12.0-4 4.12.0-5 4.13.1-1")
    @pytest.mark.parametrize(
        ("packet", "code"),
        [
            ("f0 [ 18 [ 15 'PLAIN' 16 'x' ] ]", 0x82),
            ("f0 [ 18 [ 16 'x' ] ]", 0x82),
            ("f0 [ 18 ]", 0x82),
            ("f0 [ ]", 0x82),
            ("f0 [ 19 [ 15 'SCRAM-SHA-256' 16 'x' ] ]", 0x82),
            ("f0 [ 00 [ 15 'SCRAM-SHA-256' 16 'x' ] ]", 0x82),
            ("f0 [ 18 [ 15 'SCRAM-SHA-256' ] ]", 0x87),
            ("f0 [ 18 05 ]", 0x81),
            ("f0 [ 18 [ 15 'SCRAM-SHA-256' ] 00 ]", 0x81),
            ("f0 [ 18 [ 21 0001 ] ]", 0x81),
            ("f0 [ 18 [ 15 'SCRAM-SHA-256' 15 'SCRAM-SHA-256' ] ]", 0x82),
        ],
    )
    def test_an_error_during_the_login_is_answered_by_connack(self, mqtt5, topic, packet, code):
        witness = login(mqtt5)
        witness.subscribe(topic)
        client, _, _ = begin(mqtt5, will=Will(topic))
        client.send(wire(packet))
        assert client.next() == Connack(False, code)
        client.expect_last()
        witness.expect_silence()

    @spec(new="3.1.2-24 3.15.2-2")
    @pytest.mark.parametrize("most", [5, 60, 90])
    def test_a_challenge_above_maximum_packet_size_is_not_sent(self, mqtt5, most):
        client = mqtt5.socket()
        client.terms = {"maximum_packet_size": most}
        first = {"auth_method": METHOD, "auth_data": Exchange().first()}
        client.send(mqtt5.packet(maximum_packet_size=most, **first))
        assert client.next() == Connack(False, 0x95)
        client.expect_last()

    @spec(new="3.1.2-30")
    def test_a_disconnect_during_the_login_is_allowed(self, mqtt5):
        client, _, _ = begin(mqtt5)
        client.disconnect()

    def test_a_takeover_happens_only_after_the_login(self, mqtt5):
        first = login(mqtt5, "me")
        second, _, proof = begin(mqtt5, "me")
        first.expect_silence()
        answer(second, proof)
        assert second.next().code == 0
        first.expect_disconnect(0x8E)

    def test_several_clients_log_in_at_once(self, mqtt5):
        waiting = [begin(mqtt5) for _ in range(8)]
        for client, exchange, proof in reversed(waiting):
            answer(client, proof, 0x18, **ABOUT)
            connack = client.next()
            assert connack.code == 0
            exchange.check(connack.properties["auth_data"])

    def test_the_log_has_the_user_name(self, mqtt5):
        login(mqtt5, "alice")
        said = f"as '{mqtt5.client_id('alice')}' (p5, c1, k0, u'user')."
        mqtt5.broker.wait_for(lambda: said in mqtt5.broker.complaints(), said)

    def test_without_a_method_a_client_needs_its_password(self, mqtt5):
        mqtt5.refuse(0x87)
        mqtt5.refuse(0x86, username="user", password=b"pencils")
        mqtt5.refuse(0x86, username="nobody", password=b"pencil")

    @spec(new="3.1.4-2")
    def test_a_password_in_connect_is_accepted_too(self, mqtt5, topic):
        mqtt5.reader(topic, qos=1, username="user", password=b"pencil")


class TestAgain:
    pytestmark = SCRAM

    @staticmethod
    def challenged(client, exchange):
        answer(client, exchange.first(), AGAIN)
        challenge = client.expect_auth(CONTINUE)
        assert challenge.properties["auth_method"] == METHOD
        return exchange.final(challenge.properties["auth_data"])

    @spec(new="4.12.1-1 4.12.0-5 3.15.2-1")
    def test_a_client_authenticates_three_times(self, mqtt5, topic):
        client = login(mqtt5)
        client.subscribe(topic)
        for _ in range(3):
            exchange = Exchange()
            proof = self.challenged(client, exchange)
            client.publish(topic, b"goes on meanwhile")
            client.receive(topic, b"goes on meanwhile")
            answer(client, proof)
            end = client.expect_auth(0)
            assert end.properties["auth_method"] == METHOD
            exchange.check(end.properties["auth_data"])
        client.expect_silence()

    @spec(new="4.12.1-1 4.4.0-1")
    def test_messages_in_flight_in_both_directions_go_on(self, mqtt5, topic):
        """Between the packets of QoS 2, and with a session that is resumed."""
        options = {"session_expiry": 60, "receive_maximum": 2}
        client = login(mqtt5, "me", **options)
        client.subscribe(topic, qos=2)
        other = login(mqtt5)
        for n in range(4):
            other.publish(topic, b"%d" % n, 2)
        first = client.expect_publish(topic, b"0", 2)
        client.send(codec.publish(f"{topic}/mine", b"", 2, 900))
        client.expect_accepted(900, 2)
        exchange = Exchange()
        proof = self.challenged(client, exchange)
        client.acknowledge(first)
        answer(client, proof)
        exchange.check(client.expect_auth(0).properties["auth_data"])
        client.release(900)
        client.receive(topic, b"1", 2)
        self.challenged(client, Exchange())
        client.drop()  # during an exchange
        client = login(mqtt5, "me", clean=False, **options)
        assert client.connack.session_present
        found = [client.next_message() for _ in range(2)]
        assert [message.payload for message in found] == [b"2", b"3"]
        answer(client, self.challenged(client, Exchange()))
        client.expect_auth(0)
        client.expect_silence()

    @spec(new="4.12.1-2")
    def test_a_wrong_password_disconnects(self, mqtt5, topic):
        witness = login(mqtt5)
        witness.subscribe(topic)
        client = login(mqtt5, will=Will(topic))
        answer(client, self.challenged(client, Exchange(password="other")))
        client.expect_disconnect(0x87)
        witness.receive(topic, b"gone")

    @spec(new="4.12.1-1 3.15.2-1")
    @pytest.mark.parametrize(
        ("packet", "code"),
        [("f0 [ ]", 0x82), ("f0 [ 18 [ 15 'SCRAM-SHA-256' ] ]", 0x82), ("f0 [ 19 ]", 0x82),
         ("f0 [ 19 [ 15 'SCRAM-SHA-256' ] ]", 0x87), ("f0 [ 19 05 ]", 0x81),
         *((f"f0 [ 19 [ 15 '{name}' 16 'x' ] ]", 0x82) for name in ("PLAIN", "scram-sha-256", "")),
         *((f"f0 [ {code} [ 15 'SCRAM-SHA-256' ] ]", 0x82) for code in ("00", "01", "87"))],
    )  # fmt: skip
    def test_another_first_message_disconnects(self, mqtt5, packet, code):
        client = login(mqtt5)
        client.send(wire(packet))
        client.expect_disconnect(code)

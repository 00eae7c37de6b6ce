"""AUTH: methods that are not there, and login and re-authentication by SCRAM-SHA-256."""

from pathlib import Path

import pytest

from ..wire.vectors import wire
from . import codec
from .codec import AGAIN, CONTINUE, Connack, Will
from .scram import METHOD, Exchange

USERS = Path(__file__).with_name("users.txt")
SCRAM = [
    pytest.mark.config(f"scram_file {USERS}\nallow_anonymous false"),
    pytest.mark.ours("mosquitto has plugins for that"),
]
ABOUT = {"user": (("a", "b"), ("a", "c"))}


@pytest.mark.spec(
    "MQTT-4.12.0-1", "MQTT-4.12.0-4", "MQTT-3.1.2-30", "MQTT-3.2.0-1", "MQTT-3.2.2-7", of="5.0"
)
@pytest.mark.parametrize("method", ["PLAIN", "scram-sha-256", "SCRAM-SHA-1", "", "Füße"])
@pytest.mark.parametrize("data", [None, b"", b"n,,n=user,r=abc"])
def test_a_method_that_is_not_there_is_refused(mqtt5, method, data):
    more = {} if data is None else {"auth_data": data}
    mqtt5.refuse(0x8C, 0x87, auth_method=method, **more)


@pytest.mark.spec("MQTT-4.12.0-7", "MQTT-4.12.0-6", "MQTT-4.13.1-1", of="5.0")
@pytest.mark.parametrize(
    "packet", ["f0 [ 19 [ 15 'SCRAM-SHA-256' ] ]", "f0 [ 18 [ 15 'X' 16 'd' ] ]", "f0 [ 19 ]"]
)
def test_without_a_method_at_connect_there_is_no_auth(mqtt5, packet):
    client = mqtt5.connect()
    client.send(wire(packet))
    client.expect_disconnect(0x82, 0x81)


def begin(mqtt5, name="", exchange=None, **options):
    """A client that has got its challenge, and the answer to it."""
    exchange = exchange or Exchange()
    client = mqtt5.socket()
    client.terms = options
    client.send(mqtt5.packet(name, auth_method=METHOD, auth_data=exchange.first(), **options))
    challenge = client.expect_auth(CONTINUE)
    assert challenge.properties["auth_method"] == METHOD
    return client, exchange, exchange.final(challenge.properties["auth_data"])


def answer(client, data, code=CONTINUE, **more):
    client.send(codec.auth(code, auth_method=METHOD, auth_data=data, **more))


def login(mqtt5, name="", **options):
    client, exchange, proof = begin(mqtt5, name, **options)
    answer(client, proof)
    connack = client.next()
    assert connack == Connack(connack.session_present, 0), connack
    assert connack.properties["auth_method"] == METHOD
    exchange.check(connack.properties["auth_data"])
    client.connack = connack
    return client


class TestLogin:
    pytestmark = SCRAM

    @pytest.mark.spec(
        "MQTT-4.12.0-2", "MQTT-4.12.0-3", "MQTT-4.12.0-5", "MQTT-3.15.2-1", "MQTT-3.2.0-1",
        of="5.0",
    )  # fmt: skip
    def test_who_knows_the_password_comes_in(self, mqtt5, topic):
        client = login(mqtt5)
        client.subscribe(topic, qos=1)
        client.publish(topic, b"x", 1)
        client.receive(topic, b"x", 1)

    def test_everything_of_the_connect_holds_then(self, mqtt5, topic):
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

    @pytest.mark.spec("MQTT-3.15.2-2", "MQTT-3.15.2-3", of="5.0")
    def test_in_packets_of_the_size_that_he_takes(self, mqtt5):
        login(mqtt5, maximum_packet_size=150, request_problem_info=0).expect_silence()

    @pytest.mark.spec("MQTT-4.12.0-4", "MQTT-3.1.4-2", "MQTT-4.13.2-1", of="5.0")
    @pytest.mark.parametrize(
        "who", [("user", "pencils"), ("user", ""), ("nobody", "pencil"), ("us,er=", "x")]
    )
    def test_who_does_not_is_refused(self, mqtt5, who):
        client, _, proof = begin(mqtt5, exchange=Exchange(*who))
        answer(client, proof)
        assert client.next().code in (0x86, 0x87)
        client.expect_last()

    @pytest.mark.parametrize("end", [b"", b"nonsense", b"c=biws,r=x,p=AAAA"])
    def test_nor_who_answers_something_else(self, mqtt5, end):
        client, _, _ = begin(mqtt5)
        answer(client, end)
        assert client.next().code in (0x80, 0x81, 0x82, 0x86, 0x87)
        client.expect_last()

    @pytest.mark.parametrize("first", [None, b"", b"nonsense", b"p=tls-unique,,n=user,r=a"])
    def test_nor_who_begins_with_something_else(self, mqtt5, first):
        more = {} if first is None else {"auth_data": first}
        mqtt5.refuse(0x80, 0x81, 0x82, 0x86, 0x87, 0x8C, auth_method=METHOD, **more)

    def test_a_proof_is_good_once(self, mqtt5):
        _, _, old = begin(mqtt5)
        client, _, _ = begin(mqtt5)
        answer(client, old)
        assert client.next().code in (0x86, 0x87)
        client.expect_last()

    @pytest.mark.spec("MQTT-3.1.2-30", "MQTT-3.2.0-1", "MQTT-3.1.4-6", of="5.0")
    @pytest.mark.parametrize(
        "packet",
        ["c0 [ ]", "30 [ 't' [ ] ]", "82 [ 0001 [ ] 't' 00 ]",
         "10 [ 'MQTT' 05 02 0000 [ ] 'x' ]"],
    )  # fmt: skip
    def test_nothing_else_may_come_before_the_end(self, mqtt5, packet):
        client, _, _ = begin(mqtt5)
        client.send(wire(packet))
        if found := client.answer():
            assert isinstance(found, Connack), "no DISCONNECT before CONNACK"
            assert found.code in (0x81, 0x82)
        client.expect_closed()

    @pytest.mark.spec("MQTT-3.1.2-30", of="5.0")
    def test_but_a_disconnect_may(self, mqtt5):
        client, _, _ = begin(mqtt5)
        client.disconnect()

    def test_who_is_there_is_not_disturbed_before_the_login_is_done(self, mqtt5):
        first = login(mqtt5, "me")
        second, _, proof = begin(mqtt5, "me")
        first.expect_silence()
        answer(second, proof)
        assert second.next().code == 0
        first.expect_disconnect(0x8E)

    def test_several_log_in_at_once(self, mqtt5):
        waiting = [begin(mqtt5) for _ in range(8)]
        for client, exchange, proof in reversed(waiting):
            answer(client, proof, **ABOUT)
            connack = client.next()
            assert connack.code == 0
            exchange.check(connack.properties["auth_data"])

    def test_the_log_says_who_came_in(self, mqtt5):
        login(mqtt5, "alice")
        said = f"{mqtt5.client_id('alice')} (p5, c1, k0, u'user')."
        mqtt5.broker.wait_for(lambda: said in mqtt5.broker.complaints(), said)

    def test_without_a_method_nobody_comes_in(self, mqtt5):
        mqtt5.refuse(0x86, 0x87)


class TestAgain:
    pytestmark = SCRAM

    @staticmethod
    def challenged(client, exchange):
        answer(client, exchange.first(), AGAIN)
        challenge = client.expect_auth(CONTINUE)
        assert challenge.properties["auth_method"] == METHOD
        return exchange.final(challenge.properties["auth_data"])

    @pytest.mark.spec("MQTT-4.12.1-1", "MQTT-4.12.0-5", "MQTT-3.15.2-1", of="5.0")
    def test_a_client_authenticates_again_and_again(self, mqtt5, topic):
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

    @pytest.mark.spec("MQTT-4.12.1-1", "MQTT-4.4.0-1", of="5.0")
    def test_with_messages_of_both_directions_under_way(self, mqtt5, topic):
        """In the midst of both halves of QoS 2, and with the session kept for the next time."""
        options = {"session_expiry": 60, "receive_maximum": 2}
        client = login(mqtt5, "me", **options)
        client.subscribe(topic, qos=2)
        other = login(mqtt5)
        for n in range(4):
            other.publish(topic, b"%d" % n, 2)
        first = client.expect_publish(topic, b"0", 2)
        client.send(codec.publish(f"{topic}/mine", b"", 2, 900))
        client.expect_accepted(codec.PUBREC, 900)
        exchange = Exchange()
        proof = self.challenged(client, exchange)
        client.acknowledge(first)
        answer(client, proof)
        exchange.check(client.expect_auth(0).properties["auth_data"])
        client.release(900)
        client.receive(topic, b"1", 2)
        self.challenged(client, Exchange())
        client.drop()  # in the midst of an exchange
        client = login(mqtt5, "me", clean=False, **options)
        assert client.connack.session_present
        found = [client.next_message() for _ in range(2)]
        assert [message.payload for message in found] == [b"2", b"3"]
        answer(client, self.challenged(client, Exchange()))
        client.expect_auth(0)
        client.expect_silence()

    @pytest.mark.spec("MQTT-4.12.1-2", of="5.0")
    def test_or_is_disconnected(self, mqtt5, topic):
        witness = login(mqtt5)
        witness.subscribe(topic)
        client = login(mqtt5, will=Will(topic))
        answer(client, self.challenged(client, Exchange(password="other")))
        client.expect_disconnect(0x87, 0x86)
        witness.receive(topic, b"gone")

    @pytest.mark.spec("MQTT-4.12.1-1", of="5.0")
    @pytest.mark.parametrize("method", ["PLAIN", "scram-sha-256", ""])
    def test_but_not_by_another_method(self, mqtt5, method):
        client = login(mqtt5)
        client.send(codec.auth(AGAIN, auth_method=method, auth_data=b"x"))
        client.expect_disconnect(0x82, 0x8C)

    @pytest.mark.parametrize("packet", ["f0 [ ]", "f0 [ 18 [ 15 'SCRAM-SHA-256' ] ]", "f0 [ 19 ]"])
    def test_what_is_no_beginning_ends_the_connection(self, mqtt5, packet):
        client = login(mqtt5)
        client.send(wire(packet))
        client.expect_disconnect(0x82, 0x81, 0x87)

    @pytest.mark.spec("MQTT-3.15.2-1", of="5.0")
    @pytest.mark.parametrize("code", ["00", "01", "87"])
    def test_nor_by_a_code_that_no_client_may_say(self, mqtt5, code):
        client = login(mqtt5)
        client.send(wire(f"f0 [ {code} [ 15 'SCRAM-SHA-256' ] ]"))
        client.expect_disconnect(0x82)

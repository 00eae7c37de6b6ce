"""Re-authentication of a connected client."""

import pytest

from ..wire.vectors import wire
from . import codec
from .codec import AGAIN, CONTINUE, Will
from .scram import METHOD, SCRAM, Exchange, answer, login


class TestAgain:
    pytestmark = SCRAM

    @staticmethod
    def challenged(client, exchange):
        answer(client, exchange.first(), AGAIN)
        challenge = client.expect_auth(CONTINUE)
        assert challenge.properties["auth_method"] == METHOD
        return exchange.final(challenge.properties["auth_data"])

    @pytest.mark.spec("MQTT-4.12.1-1", "MQTT-4.12.0-5", "MQTT-3.15.2-1", of="5.0")
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

    @pytest.mark.spec("MQTT-4.12.1-1", "MQTT-4.4.0-1", of="5.0")
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

    @pytest.mark.spec("MQTT-4.12.1-2", of="5.0")
    def test_a_wrong_password_disconnects(self, mqtt5, topic):
        witness = login(mqtt5)
        witness.subscribe(topic)
        client = login(mqtt5, will=Will(topic))
        answer(client, self.challenged(client, Exchange(password="other")))
        client.expect_disconnect(0x87)
        witness.receive(topic, b"gone")

    @pytest.mark.spec("MQTT-4.12.1-1", of="5.0")
    @pytest.mark.parametrize("method", ["PLAIN", "scram-sha-256", ""])
    def test_another_method_disconnects(self, mqtt5, method):
        client = login(mqtt5)
        client.send(codec.auth(AGAIN, auth_method=method, auth_data=b"x"))
        client.expect_disconnect(0x82)

    @pytest.mark.parametrize(
        ("packet", "code"),
        [("f0 [ ]", 0x82), ("f0 [ 18 [ 15 'SCRAM-SHA-256' ] ]", 0x82), ("f0 [ 19 ]", 0x82),
         ("f0 [ 19 [ 15 'SCRAM-SHA-256' ] ]", 0x87), ("f0 [ 19 05 ]", 0x81)],
    )  # fmt: skip
    def test_a_malformed_first_message_disconnects(self, mqtt5, packet, code):
        client = login(mqtt5)
        client.send(wire(packet))
        client.expect_disconnect(code)

    @pytest.mark.spec("MQTT-3.15.2-1", of="5.0")
    @pytest.mark.parametrize("code", ["00", "01", "87"])
    def test_a_code_that_no_client_may_send_disconnects(self, mqtt5, code):
        client = login(mqtt5)
        client.send(wire(f"f0 [ {code} [ 15 'SCRAM-SHA-256' ] ]"))
        client.expect_disconnect(0x82)

"""CONNECT and CONNACK: what is accepted, announced and refused, and with which code."""

import string
import time

import pytest

from ..wire5 import codec as codec5
from . import codec
from .codec import Connack, Will
from .scene import each_version, spec
from .vectors import GOOD_TEXT, wire

# Properties that a server may only send where it limits something, or is asked for it.
UNSENT = {
    "maximum_qos", "retain_available", "wildcard_available", "subscription_id_available",
    "shared_available", "assigned_client_id", "session_expiry", "server_keep_alive",
    "response_info", "auth_method", "auth_data", "server_reference",
}  # fmt: skip


@each_version(
    "3.1.4-4 3.2.0-1 3.2.2-1 7.1.1-1",
    "3.1.4-5 3.2.0-2 3.2.2-1 3.2.2-2 2.2.2-1 4.2.0-1 4.12.0-6 3.1.2-28",
)
def test_a_valid_connect_is_answered_with_one_connack(mqtt):
    client = mqtt.connect("me")
    assert client.connack == mqtt.codec.Connack(False, 0)
    assert not UNSENT & set(getattr(client.connack, "properties", ()))
    client.expect_silence()


@pytest.mark.ours("mosquitto's packets have no maximum")
def test_the_connack_announces_what_the_tables_hold(mqtt5):
    properties = mqtt5.connect().connack.properties
    assert 1 <= properties["receive_maximum"] < 65535
    assert properties["maximum_packet_size"] > 1000


@each_version("3.1.3-5", "3.1.3-5 3.1.3-3")
@pytest.mark.parametrize(
    "client_id", ["Z", string.digits + "abcdefghijklm", string.ascii_letters[13:36], "A" * 26]
)
def test_client_ids_of_1_to_23_letters_and_digits_are_accepted(mqtt, client_id):
    assert mqtt.socket().connect(mqtt.codec.connect(client_id)).code == 0


@each_version("3.1.3-4", "3.1.3-4")
@pytest.mark.parametrize("text", GOOD_TEXT.values(), ids=GOOD_TEXT)
def test_client_ids_are_any_utf8_text(mqtt, text):
    mqtt.connect(text).expect_silence()


@each_version("3.1.2-18 3.1.2-19 3.1.2-20 3.1.2-21 3.1.3-1", "3.1.2-16 3.1.2-18")
@pytest.mark.parametrize("password", [None, b"", b"secret\x00\xff"])
@pytest.mark.parametrize("username", [None, "", "user"])
@pytest.mark.parametrize("will", [None, Will("w", b"", 2, True)])
def test_every_combination_of_fields_is_read_to_its_end(mqtt, will, username, password):
    """Only in 5.0 may there be a password without a user name."""
    if mqtt.codec is codec and username is None:
        password = None
    client = mqtt.connect(will=will, username=username, password=password)
    client.expect_silence()
    client.disconnect()


@spec(new="3.1.3-1 3.1.2-9 3.1.2-17 3.1.2-19")
def test_a_connect_with_all_fields_and_properties(mqtt5, topic):
    will = Will(topic, b"gone", 1, True, properties={
        "will_delay": 1, "payload_format": 1, "message_expiry": 60, "content_type": "text/plain",
        "response_topic": "r", "correlation_data": b"\0\1", "user": (("a", "1"), ("a", "2")),
    })  # fmt: skip
    client = mqtt5.connect(
        will=will, username="user", password=b"\0secret", keep_alive=60, clean=False,
        session_expiry=10, receive_maximum=10, maximum_packet_size=10000, topic_alias_maximum=5,
        request_response_info=1, request_problem_info=0, user=(("k", "v"), ("k", "w")),
    )  # fmt: skip
    client.expect_silence()
    client.disconnect()


OTHER = [("MQTT", level) for level in (0, 1, 2, 3, 6, 7, 127, 255)] + [("MQIsdp", 4)]
OTHER += [(name, 5) for name in ("MQIsdp", "MQIsdP", "mqtt", "MQT", "MQTTT", "MQTT5", "HTTP", "")]


@spec("3.1.2-1 3.1.2-2 3.2.2-4 3.2.2-5 3.2.2-6", "3.1.2-2 3.1.2-1")
@pytest.mark.parametrize(("name", "level"), OTHER)
def test_other_protocols_are_refused(mqtt5, name, level):
    """Another level with the CONNACK of 3.1.1, another name without a CONNACK.

    The peer may send 0x84."""
    known = name in ("MQTT", "MQIsdp")
    for properties in ("", "[ ]"):
        client = mqtt5.socket()
        client.send(wire(f"10 [ '{name}' {level:02x} 02 0000 {properties} 'x' ]"))
        said = client.read_to_end()
        if mqtt5.is_peer:
            assert said in (b"", b"\x20\x02\x00\x01") or said[2:4] == b"\x00\x84"
        else:
            assert said == (b"\x20\x02\x00\x01" if known else b"")


@each_version("3.1.3-6 3.1.3-7", "3.1.3-6 3.1.3-7 3.2.2-16")
def test_clients_without_an_id_are_given_one_each(mqtt, topic):
    clients = [mqtt.socket() for _ in range(3)]
    given = [client.connect(mqtt.codec.connect("")) for client in clients]
    for client in clients:
        client.subscribe(topic)
    clients[0].publish(topic)
    for client in clients:
        client.receive(topic)
    if mqtt.codec is codec5:
        names = [answer.properties["assigned_client_id"] for answer in given]
        assert len({*names}) == 3 and all(names)
        mqtt.socket().connect(codec5.connect(names[0]))
        clients[0].expect_disconnect(0x8E)
        clients[1].expect_silence()


@spec("3.1.3-7 3.1.3-8 3.1.3-9")
def test_a_persistent_session_needs_a_client_id(mqtt):
    mqtt.socket().expect_refused(codec.connect("", clean=False), 2)


@spec(new="3.1.3-7 3.1.2-6")
def test_an_assigned_client_id_resumes_its_session(mqtt5, topic):
    client = mqtt5.socket()
    answer = client.connect(codec5.connect("", clean=False, session_expiry=60))
    client.subscribe(topic)
    client.disconnect()
    name = answer.properties["assigned_client_id"]
    client = mqtt5.socket()
    assert client.connect(codec5.connect(name, clean=False)) == codec5.Connack(True, 0)


@each_version("3.1.3-9", "3.1.3-8 3.2.2-7 3.2.2-8")
@pytest.mark.ours("mosquitto calls that an unspecified error in 5.0")
@pytest.mark.config("allow_zero_length_clientid false")
@pytest.mark.parametrize("clean", [True, False])
def test_an_empty_client_id_can_be_refused(mqtt, clean):
    mqtt.socket().expect_refused(mqtt.codec.connect("", clean=clean), 2, 0x85)


@pytest.mark.config("auto_id_prefix robot-")
def test_auto_id_prefix_is_accepted(mqtt5):
    answer = mqtt5.socket().connect(codec5.connect(""))
    assert answer.properties["assigned_client_id"].startswith("robot-")


@each_version("3.1.4-5", "3.1.4-2 3.1.4-6 4.13.2-1 3.2.2-6")
@pytest.mark.config("allow_anonymous false")
def test_a_missing_user_name_is_refused(mqtt, topic):
    packet = mqtt.packet("nobody") + mqtt.codec.publish(topic, b"never", retain=True)
    mqtt.socket().expect_refused(packet, 5, 0x87, *(mqtt.is_peer * [0x86]))


@each_version("3.1.0-2", "3.1.0-2 4.13.1-1")
@pytest.mark.ours("mosquitto closes 5.0 without a word")
def test_a_second_connect_ends_the_connection(mqtt):
    client = mqtt.connect("twice")
    client.send(mqtt.packet("twice"))
    client.expect_disconnect(0x82)


@each_version()
def test_packets_sent_together_with_connect_are_handled_after_it(mqtt, topic):
    client = mqtt.socket()
    subscribe = mqtt.codec.subscribe(1, (topic, 1))
    publish = mqtt.codec.publish(topic, b"x", 1, 2)
    client.send(mqtt.packet() + subscribe + publish + codec.PINGREQ)
    assert client.next() == mqtt.codec.Connack(False, 0)
    client.expect(mqtt.codec.Suback(1, (1,)))
    client.expect_accepted(2, 1)
    client.receive(topic, qos=1)


@pytest.mark.ours("mosquitto has no time limit of its own for CONNECT")
@pytest.mark.config("connect_timeout 1\npacket_timeout 1")
def test_a_connection_without_connect_is_closed_in_time(mqtt):
    silent, half = mqtt.socket(), mqtt.socket()
    half.send(mqtt.packet()[:7])
    other = mqtt.connect()
    silent.expect_closed()
    half.expect_closed()
    other.expect_silence()


@each_version("3.12.4-1", "3.12.4-1")
def test_every_pingreq_is_answered(mqtt):
    client = mqtt.connect()
    client.send(codec.PINGREQ * 3)
    assert [client.next() for _ in range(3)] == [codec.Pingresp()] * 3
    client.expect_silence()


@pytest.mark.ours("mosquitto makes it an error to ask for response information")
@spec(new="3.1.2-28")
@pytest.mark.config("response_information answers/here")
@pytest.mark.parametrize(("asked", "answered"), [(None, None), (0, None), (1, "answers/here")])
def test_response_information_is_sent_on_request(mqtt5, asked, answered):
    wanted = {} if asked is None else {"request_response_info": asked}
    client = mqtt5.connect(**wanted)
    assert client.connack.properties.get("response_info") == answered


@pytest.mark.ours("mosquitto makes it an error to ask for response information")
@pytest.mark.config("response_information answers/here")
@pytest.mark.parametrize(("most", "answered"), [(30, None), (31, "answers/here")])
def test_response_information_that_is_too_large_is_left_out(mqtt5, most, answered):
    client = mqtt5.connect(request_response_info=1, maximum_packet_size=most)
    assert client.connack.properties.get("response_info") == answered


@each_version(new="3.2.2-22")
@pytest.mark.config("max_keepalive 10")
@pytest.mark.parametrize(
    ("asked", "lowered"), [(1, None), (10, None), (11, 10), (65535, 10), (0, 10)]
)
def test_a_keep_alive_over_the_limit_is_refused_or_in_5_0_lowered(mqtt, asked, lowered):
    answer = mqtt.socket().connect(mqtt.packet(keep_alive=asked))
    if mqtt.codec is codec:
        assert answer == Connack(False, 2 if lowered else 0)
    else:
        assert (answer.code, answer.properties.get("server_keep_alive")) == (0, lowered)


@pytest.mark.ours("mosquitto counts whole seconds, and looks seldom")
@pytest.mark.config("max_keepalive 1")
@spec(new="3.1.2-22 3.2.2-22")
def test_a_lowered_keep_alive_is_enforced(mqtt5, topic):
    witness = mqtt5.reader(topic, name="witness", keep_alive=1)
    silent = mqtt5.connect(keep_alive=100, will=Will(topic))
    assert silent.connack.properties["server_keep_alive"] == 1
    mute = mqtt5.connect(keep_alive=1)
    for _ in range(4):
        witness.ping()
        witness.wait(0.5)
    witness.receive(topic, b"gone")
    silent.expect_disconnect(0x8D)
    mute.expect_disconnect(0x8D)


@pytest.mark.parametrize("count", [1, 100, 5000])
def test_many_user_properties(mqtt5, count):
    user = tuple((f"name{i}", "v") for i in range(count))
    mqtt5.connect(user=user).expect_silence()


def seconds_until_closed(client, since):
    client.expect_disconnect(0x8D)
    return time.monotonic() - since


@each_version("3.1.2-24 3.1.2-8", "3.1.2-22 3.14.2-1")
@pytest.mark.ours("mosquitto counts whole seconds, and closes 5.0 without DISCONNECT")
def test_silence_for_one_and_a_half_times_the_keep_alive(mqtt, topic):
    witness = mqtt.connect()  # promises nothing: keep alive 0
    witness.subscribe(topic)
    start = time.monotonic()
    mute = mqtt.connect(keep_alive=1, will=Will(topic))
    patient = mqtt.connect(keep_alive=60)
    assert 1.4 < seconds_until_closed(mute, start) < 3.0
    witness.receive(topic, b"gone")
    witness.expect_silence()
    patient.expect_silence()


@spec("3.1.2-24")
def test_every_packet_restarts_the_keep_alive(mqtt, topic):
    pinging, publishing, silent = (mqtt.connect(keep_alive=1) for _ in range(3))
    time.sleep(0.8)  # of the second and a half that they may be silent
    pinging.ping()
    publishing.publish(topic, qos=1)
    silent.expect_closed()
    start = time.monotonic()
    pinging.expect_silence()
    publishing.expect_silence()
    assert 1.4 < seconds_until_closed(pinging, start) < 3.0
    publishing.expect_closed()

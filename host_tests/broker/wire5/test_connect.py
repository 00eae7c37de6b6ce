"""CONNECT and CONNACK in MQTT 5.0: what is accepted, announced and refused."""

import pytest

from ..wire.vectors import wire
from . import codec
from .codec import Connack

# Properties that a server may only send where it limits something.
AVAILABLE = (
    "maximum_qos",
    "retain_available",
    "wildcard_available",
    "subscription_id_available",
    "shared_available",
)


@pytest.mark.spec(
    "MQTT-3.1.4-5", "MQTT-3.2.0-2", "MQTT-3.2.2-1", "MQTT-3.2.2-2", "MQTT-4.2.0-1", of="5.0"
)
def test_a_connect_is_answered_with_one_connack(mqtt5):
    client = mqtt5.connect()
    assert client.connack == Connack(False, 0)
    client.expect_silence()


@pytest.mark.spec("MQTT-2.2.2-1", "MQTT-4.12.0-6", "MQTT-3.1.2-28", of="5.0")
def test_the_connack_has_no_property_without_need(mqtt5):
    properties = mqtt5.connect().connack.properties
    assert not set(AVAILABLE) & set(properties), "these are available by default"
    unsent = {"assigned_client_id", "session_expiry", "server_keep_alive", "response_info"}
    unsent |= {"auth_method", "auth_data", "server_reference"}
    assert not unsent & set(properties), properties


@pytest.mark.ours("mosquitto's packets have no maximum")
def test_the_connack_announces_what_the_tables_hold(mqtt5):
    properties = mqtt5.connect().connack.properties
    assert 1 <= properties["receive_maximum"] < 65535
    assert properties["maximum_packet_size"] > 1000


@pytest.mark.spec("MQTT-3.1.3-5", "MQTT-3.1.3-3", "MQTT-3.1.3-4", of="5.0")
@pytest.mark.parametrize(
    "client_id",
    ["0", "azAZ09", "abcdefghijklmnopqrstuvw", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "Füße/😀 x"],
)
def test_client_ids_that_every_server_accepts_and_others(mqtt5, client_id):
    assert mqtt5.socket().connect(codec.connect(client_id)).code == 0


@pytest.mark.spec("MQTT-3.1.3-6", "MQTT-3.1.3-7", "MQTT-3.2.2-16", of="5.0")
def test_an_empty_client_id_gets_an_assigned_one(mqtt5):
    first, second = mqtt5.socket(), mqtt5.socket()
    given = [
        client.connect(codec.connect("")).properties["assigned_client_id"]
        for client in (first, second)
    ]
    assert given[0] != given[1]
    assert all(given)
    taker = mqtt5.socket()
    taker.connect(codec.connect(given[0]))
    first.expect_disconnect(0x8E)
    second.expect_silence()


@pytest.mark.spec("MQTT-3.1.3-7", "MQTT-3.1.2-6", of="5.0")
def test_an_assigned_client_id_resumes_its_session(mqtt5, topic):
    client = mqtt5.socket()
    answer = client.connect(codec.connect("", clean=False, session_expiry=60))
    client.subscribe(topic)
    client.disconnect()
    name = answer.properties["assigned_client_id"]
    client = mqtt5.socket()
    assert client.connect(codec.connect(name, clean=False)) == Connack(True, 0)


@pytest.mark.ours("mosquitto calls that an unspecified error")
@pytest.mark.config("allow_zero_length_clientid false")
@pytest.mark.spec("MQTT-3.1.3-8", "MQTT-3.2.2-7", "MQTT-3.2.2-8", of="5.0")
@pytest.mark.parametrize("clean", [True, False])
def test_an_empty_client_id_can_be_refused(mqtt5, clean):
    mqtt5.socket().expect_refused(codec.connect("", clean=clean), 0x85)


OTHER = [("MQTT", level) for level in (0, 2, 6, 7, 127, 255)]
OTHER += [(name, 5) for name in ("MQIsdp", "mqtt", "MQT", "MQTT5", "")]


@pytest.mark.spec("MQTT-3.1.2-2", "MQTT-3.1.2-1", of="5.0")
@pytest.mark.parametrize(("name", "level"), OTHER)
def test_other_protocols_are_refused(mqtt5, name, level):
    """Another level with the CONNACK of 3.1.1, another name without a CONNACK.

    The peer may send 0x84."""
    client = mqtt5.socket()
    client.send(wire(f"10 [ '{name}' {level:02x} 02 0000 [ ] 'x' ]"))
    said = client.read_to_end()
    known = name in ("MQTT", "MQIsdp")
    if mqtt5.is_peer:
        assert said in (b"", b"\x20\x02\x00\x01") or said[2:4] == b"\x00\x84"
    else:
        assert said == (b"\x20\x02\x00\x01" if known else b"")


@pytest.mark.ours("mosquitto closes without a word")
@pytest.mark.spec("MQTT-3.1.0-2", "MQTT-4.13.1-1", of="5.0")
def test_a_second_connect_ends_the_connection(mqtt5):
    client = mqtt5.connect("me")
    client.send(mqtt5.packet("me"))
    client.expect_disconnect(0x82)


@pytest.mark.spec("MQTT-3.1.3-1", "MQTT-3.1.2-9", "MQTT-3.1.2-17", "MQTT-3.1.2-19", of="5.0")
def test_a_connect_with_all_fields_and_properties(mqtt5, topic):
    will = codec.Will(topic, b"gone", 1, True, properties={
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


@pytest.mark.spec("MQTT-3.1.2-16", "MQTT-3.1.2-18", of="5.0")
def test_a_password_needs_no_user_name(mqtt5):
    mqtt5.connect(password=b"secret").expect_silence()
    mqtt5.connect(username="user").expect_silence()
    mqtt5.connect(username="", password=b"").expect_silence()


@pytest.mark.config("allow_anonymous false")
@pytest.mark.spec("MQTT-3.1.4-2", "MQTT-3.1.4-6", "MQTT-4.13.2-1", "MQTT-3.2.2-6", of="5.0")
def test_a_missing_user_name_is_refused(mqtt5, topic):
    client = mqtt5.socket()
    client.send(mqtt5.packet("nobody") + codec.publish(topic, b"never", retain=True))
    assert client.next().code in mqtt5.codes(0x87, 0x86)
    client.expect_closed()


@pytest.mark.ours("mosquitto makes it an error to ask for response information")
@pytest.mark.spec("MQTT-3.1.2-28", of="5.0")
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


@pytest.mark.config("max_keepalive 10")
@pytest.mark.spec("MQTT-3.2.2-22", of="5.0")
@pytest.mark.parametrize(
    ("asked", "answered"), [(5, None), (10, None), (11, 10), (65535, 10), (0, 10)]
)
def test_the_keep_alive_is_lowered(mqtt5, asked, answered):
    client = mqtt5.connect(keep_alive=asked)
    assert client.connack.properties.get("server_keep_alive") == answered


@pytest.mark.ours("mosquitto counts whole seconds, and looks seldom")
@pytest.mark.config("max_keepalive 1")
@pytest.mark.spec("MQTT-3.1.2-22", "MQTT-3.2.2-22", of="5.0")
def test_a_lowered_keep_alive_is_enforced(mqtt5, topic):
    witness = mqtt5.connect("witness", keep_alive=1)
    witness.subscribe(topic)
    silent = mqtt5.connect(keep_alive=100, will=codec.Will(topic))
    assert silent.connack.properties["server_keep_alive"] == 1
    mute = mqtt5.connect(keep_alive=1)
    for _ in range(4):
        witness.ping()
        witness.wait(0.5)
    witness.receive(topic, b"gone")
    silent.expect_disconnect(0x8D)
    mute.expect_disconnect(0x8D)


@pytest.mark.spec("MQTT-3.1.0-1", "MQTT-3.2.0-1", "MQTT-3.14.0-1", of="5.0")
@pytest.mark.parametrize(
    "packet",
    ["c0 [ ]", "30 [ 't' [ ] ]", "e0 [ ]", "e0 [ 00 ]", "f0 [ 18 [ ] ]", "82 [ 0001 [ ] 't' 00 ]"],
)
def test_a_packet_before_connect_is_not_answered(mqtt5, packet):
    client = mqtt5.socket()
    client.send(wire(packet) + mqtt5.packet())
    client.expect_closed()


@pytest.mark.parametrize("count", [1, 100, 5000])
def test_many_user_properties(mqtt5, count):
    user = tuple((f"name{i}", "v") for i in range(count))
    client = mqtt5.connect(user=user)
    client.expect_silence()

"""A password_file over TCP: CONNECT of each version, packets behind it, and others meanwhile."""

from pathlib import Path

import pytest

from . import codec
from .scene import each_version, spec

USERS = Path(__file__).parents[1] / "wire5/users.txt"
RIGHT = {"username": "user", "password": b"pencil"}

pytestmark = [
    pytest.mark.config(f"password_file {USERS}\nallow_anonymous false\nlogin_delay_max 0"),
    pytest.mark.ours("mosquitto cannot read this file"),
]


@each_version("3.1.4-4 3.2.0-1", "3.1.4-5")
def test_packets_behind_a_connect_with_a_password_are_handled_after_it(mqtt, topic):
    client = mqtt.socket()
    subscribe = mqtt.codec.subscribe(1, (topic, 1))
    publish = mqtt.codec.publish(topic, b"x", 1, 2)
    client.send(mqtt.packet(**RIGHT) + subscribe + publish + codec.PINGREQ)
    assert client.next() == mqtt.codec.Connack(False, 0)
    client.expect(mqtt.codec.Suback(1, (1,)))
    client.expect_accepted(2, 1)
    client.receive(topic, qos=1)


@spec("3.2.2-4 3.2.2-5 3.1.4-5")
@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"username": "user", "password": b"pen"}, 4),
        ({"username": "nobody", "password": b"pencil"}, 4),
        ({"username": "user", "password": b""}, 4),
        ({"username": "user"}, 4),
        ({}, 5),
    ],
    ids=["wrong", "unknown", "empty", "missing", "no user name"],
)
def test_who_is_refused_and_nothing_behind_it_is_handled(mqtt, topic, options, code):
    witness = mqtt.reader(topic, **RIGHT)
    packet = mqtt.packet(**options)
    mqtt.socket().expect_refused(packet + codec.publish(topic), code)
    witness.expect_silence()


@spec("3.1.4-2")
def test_a_guess_does_not_take_a_session_over(mqtt, topic):
    client = mqtt.connect("me", **RIGHT)
    mqtt.socket().expect_refused(mqtt.packet("me", username="user", password=b"pen"), 4)
    client.subscribe(topic)
    mqtt.connect("me", **RIGHT)
    client.expect_closed()


def test_other_clients_are_served_while_passwords_are_computed(mqtt, topic):
    reader = mqtt.reader(topic, **RIGHT)
    guesses = []
    for number in range(50):
        guess = mqtt.socket()
        guess.send(mqtt.packet(username=f"user{number}", password=b"guess"))
        reader.publish(topic, b"%d" % number, 0)
        reader.receive(topic, b"%d" % number)
        guesses.append(guess)
    for guess in guesses:
        assert guess.next() == codec.Connack(False, 4)
        guess.expect_closed()

"""The keys below `connection NAME`, and the options of Broker.bridge()."""

import os
import unittest

import scratch

from slotmq import Limits, Settings
from slotmq.bridge.options import address_of, check, load, options, tls_keys, topic
from slotmq.config import budget, mosquitto_conf, reload
from slotmq.config.settings import ConfError

LIMITS = Limits(connections=4)
BEGIN = "connection up\naddress h\ntopic # out\n"
TWO = "address h\ntopic a\n"
LAZY = "address h\ntopic a out 1\nstart_type lazy\n"
MANY = "".join([f"connection b{k}\n{TWO}" for k in range(4)])
FIVE = "bridge_receive_maximum", "bridge_session_expiry_interval", "bridge_max_topic_alias"
BAD_TOPICS = ("a up", "a out 3", "a/#/b", "a out 0 x/+/ y", '""', '"" out 0 x', "a out 0 b c d")
BAD_TOPICS += ("", '"a b', '"a b" out "c d" e', '"a b"c out', "a sideways", "a b c", '"abc out 1')
BAD_ADDRESSES = ("h:0", "h:x", "h:70000", "[::1", "[::1]1", "h:", "[::1]:", ":5", "", "h:99999")
BAD_ADDRESSES += ("mqtt://127.0.0.1:1883", "127.0.0.1 1884")
BAD_PAUSES = ("0", "9 2", "1 2 -3", "1 2 3 4", "9 2 9", "3601", "1 7201", "x", "")
# What stands below `connection up`, the line that is named, and a part of what is said: one line
# for each mistake, and the start finds no other one. L is 300 characters, M is 70,000.
MISTAKES = [
    ("topic a\n", 1, "connection: expected an address, for up"),
    ("address h\n", 1, "connection: expected a topic, for up"),
    (TWO + "address g\n", 4, "address: expected one line"),
    ("address h\ntopic $share/g/a out 1\n", 3, "topic: expected out without $share"),
    (TWO + "keepalive_interval 70000\n", 4, "keepalive_interval: expected a number"),
    (TWO + "clientid {L}\n", 1, "a local_clientid of at most 64 bytes"),
    (TWO + "local_clientid {L}\n", 1, "a local_clientid of at most 64 bytes"),
    (
        TWO + "local_clientid x\nclientid {L}\nnotifications false\nusername {L}{L}\n",
        1,
        "bytes 923",
    ),
    (TWO + "remote_username {M}\n", 1, "remote_username: at most 65535 bytes"),
    (TWO + "username u\npassword {M}\n", 1, "remote_password: at most 65535 bytes"),
    (TWO + "local_username {M}\n", 1, "local_username: at most 65535 bytes"),
    (TWO + "notification_topic {L}\n", 1, "a notification_topic of at most 256 bytes"),
    (TWO + "notification_topic a/#\n", 1, "without wildcards"),
    (TWO + "remote_clientid a+\n", 1, "without wildcards"),
    (TWO + "password p\n", 1, "remote_username for remote_password"),
    ("address h\ntopic a\nstart_type lazy\n", 1, "a topic out at QoS 1 or 2"),
    ("address h\ntopic a in 1\nstart_type lazy\n", 1, "a topic out at QoS 1 or 2"),
    (LAZY + "threshold 13\nlimit queued 12\n", 1, "threshold: at most 12"),
    (LAZY + "threshold 11\nlimit messages 20\n", 1, "threshold: at most 10"),
    (LAZY + "threshold 8\nmax_queued_messages 7\n", 1, "threshold: at most 7"),
    (LAZY + "cleansession true\n", 1, "local_cleansession false"),
    (TWO + "bridge_bind_address foo\n", 1, "bridge_bind_address: an IP address"),
    (TWO + "bridge_bind_address 127.0.0.256\n", 1, "bridge_bind_address: an IP address"),
    (TWO + "bridge_bind_address 1.2.3\n", 1, "bridge_bind_address: an IP address"),
    (TWO + "mqtt_versions 3\n", 1, "mqtt_versions 5"),
    (TWO + "topic {L}\n", 1, "topic_bytes"),
    (TWO + "bridge_protocol_version mqttv51\n", 4, "mqttv311 or mqttv31 or mqttv50"),
    (TWO + "bridge_max_packet_size 20\n", 4, "from 128 to"),
    (TWO + "connection up\n" + TWO, 4, "no earlier connection"),
    (TWO + "clientid c\nconnection two\n" + TWO + "clientid c\n", 5, "no earlier connection has"),
    (TWO + "clientid c\nconnection two\n" + TWO + "local_clientid local.c\n", 5, "no earlier"),
    (TWO + f"limit bridges 9\nlimit bridge_topics 9\n{MANY}", 15, "see limit connections"),
    (TWO + f"limit bridge_topics 1\nconnection b0\n{TWO}", 5, "see limit bridge_topics"),
    (TWO + "limit bridges 0\n", 1, "at most 0, see limit bridges"),
    (TWO + "bridge_insecure perhaps\n", 4, "bridge_insecure: expected true or false"),
    (TWO + "bridge_tls_version tlsv1.1\n", 4, "tlsv1.2 or tlsv1.3"),
    (TWO + "bridge_tls_version tlsv1.2\n", 1, "bridge_tls_use_os_certs true"),
    (TWO + "bridge_capath /\n", 1, "bridge_capath: "),
]
MISTAKES += [(f"{TWO}{key} 5\n", 1, f"mqttv50 for {key}") for key in FIVE]
MISTAKES += [(f"{TWO}{key} x\n", 4, "a number") for key in FIVE]
MISTAKES += [(f"address h\ntopic {value}\n", 3, "topic: expected ") for value in BAD_TOPICS]
MISTAKES += [(f"address {value}\ntopic a\n", 2, "address: expected ") for value in BAD_ADDRESSES]
MISTAKES += [(f"{TWO}restart_timeout {value}\n", 4, "_timeout: expected ") for value in BAD_PAUSES]
FILES = "bridge_cafile", "bridge_capath", "bridge_certfile", "bridge_keyfile"
MISTAKES += [(f"{TWO}{key} /not/there\n", 4, "can be read") for key in FILES]
# What a program must not give to a key
VALUES = (
    ("keepalive_interval", (-1, 65536, "60", 1.5, True, None)),
    ("threshold", (0, 65001, "10")),
    ("idle_timeout", (0, 65536, None)),
    ("restart_timeout", (0, 3601, (5, 1), (1,), (1, 2, -3), (1, 2, 3, 4), "5", (1, "x"), None)),
    ("bridge_max_packet_size", (-1, 1, 127, 1 << 28, "500")),
    ("bridge_receive_maximum", (-1, 65536, "x")),
    ("bridge_max_topic_alias", (-1, 65536)),
    ("bridge_session_expiry_interval", (-1, 1 << 32, "1")),
    ("cleansession", (1, "true", None)),
    ("local_cleansession", (1, "true")),
    ("round_robin", ("yes",)),
    ("start_type", ("manual", None, 1)),
    ("bridge_protocol_version", ("mqttv51", 5)),
    ("remote_clientid", (5, b"x", "")),
    ("remote_username", (5, "u" * 70000)),
    ("notification_topic", ("a/#", 7)),
    ("bridge_bind_address", ("foo", 1)),
)
GOOD = (
    ("restart_timeout", 5),
    ("restart_timeout", (1, 3600)),
    ("restart_timeout", (1, 7200, 9)),
    ("bridge_max_packet_size", 0),
    ("bridge_session_expiry_interval", None),
    ("local_cleansession", None),
    ("remote_password", None),
    ("round_robin", True),
)
# Of options(): a name, addresses, topics
CALLS = [("", ["h"], [("a",)]), (5, ["h"], [("a",)]), ("up", [5], [("a",)])]
CALLS += [("up", ["1884"], [("a",)]), ("up", ["h"], ["a/#"])]
BAD = ((), ("a", "out", 1, "", "", ""), ("a", "up"), ("a", "out", "1"), ("a", "out", 3))
CALLS += [("up", ["h"], [each]) for each in BAD]
BAD = (("a", "out", None), (None, "out"), ("a", "out", 1, None))
CALLS += [("up", ["h"], [each]) for each in BAD]
# The value of a topic line; the filter, out, in, the QoS, the prefixes
TOPICS = (
    ('"a b/#" both 1', b"a b/#", True, True, 1, (b"", b"")),
    ('"a  b"', b"a  b", True, False, 0, (b"", b"")),
    ('"a"  IN', b"a", False, True, 0, (b"", b"")),
    ('"a b" out 2 l/ r/ # c', b"a b", True, False, 2, (b"l/", b"r/")),
    ("a OUT", b"a", True, False, 0, (b"", b"")),
    ("a Both 2", b"a", True, True, 2, (b"", b"")),
    ("#", b"#", True, False, 0, (b"", b"")),
    ("# both # c", b"#", True, True, 0, (b"", b"")),
    ("a out # c", b"a", True, False, 0, (b"", b"")),
    ("a out 1 # c d e f", b"a", True, False, 1, (b"", b"")),
    ("a out 1 l/ # c", b"a", True, False, 1, (b"l/", b"")),
    ('a out 1 "" r/ #c', b"a", True, False, 1, (b"", b"r/")),
    ('"" out 1 l r # c', b"", True, False, 1, (b"l", b"r")),
    ("x/# both 2 l/ r/", b"x/#", True, True, 2, (b"l/", b"r/")),
)
# The value of an address line, and what it means; None: it is wrong. mosquitto has no brackets:
# what stands behind the last colon is the port.
ADDRESSES = [
    ("::1:1884", ("::1", 1884)),
    ("fe80::1:1884", ("fe80::1", 1884)),
    ("1:2:3:4:5:6:7:8:9", ("1:2:3:4:5:6:7:8", 9)),
    ("[fe80::1]:1884", ("fe80::1", 1884)),
    ("[::1]", ("::1", 1883)),
    ("h:1884", ("h", 1884)),
    ("h", ("h", 1883)),
]
BAD = "::1", "fe80::1", "1:2:3:4:5:6:7:8", "[::1", "g::1:1883", "1:2:3"
ADDRESSES += [(each, None) for each in BAD]
# A line, and the attribute that it sets
LINES = (
    ("remote_clientid rid", "remote_clientid", "rid"),
    ("clientid rid", "remote_clientid", "rid"),
    ("local_clientid lid", "local_clientid", "lid"),
    ("remote_username ru", "remote_username", "ru"),
    ("username ru", "remote_username", "ru"),
    ("username u\npassword a # b", "remote_password", "a # b"),  # it is part of a text
    ("local_username lu", "local_username", "lu"),
    ("cleansession true # c", "cleansession", True),
    ("local_cleansession false", "local_cleansession", False),
    ("keepalive_interval 7 # c", "keepalive_interval", 7),
    ("restart_timeout 4", "restart_timeout", 4),
    ("restart_timeout 2 9", "restart_timeout", (2, 9)),
    ("restart_timeout 1 2 3 # c", "restart_timeout", (1, 2, 3)),
    ("try_private false", "try_private", False),
    ("notifications false", "notifications", False),
    ("notifications_local_only true", "notifications_local_only", True),
    ("notification_topic n", "notification_topic", "n"),
    ("bridge_bind_address 127.0.0.1", "bridge_bind_address", "127.0.0.1"),
    ("bridge_protocol_version mqttv31", "bridge_protocol_version", "mqttv31"),
    ("bridge_attempt_unsubscribe false", "bridge_attempt_unsubscribe", False),
    ("bridge_outgoing_retain false", "bridge_outgoing_retain", False),
    ("round_robin true", "round_robin", True),
    ("topic a out 1\nstart_type lazy", "start_type", "lazy"),
    ("idle_timeout 8", "idle_timeout", 8),
    ("threshold 9", "threshold", 9),
    ("bridge_max_packet_size 500 # c", "bridge_max_packet_size", 500),
    ("bridge_max_packet_size 0", "bridge_max_packet_size", 0),
    ("bridge_protocol_version mqttv50\nbridge_receive_maximum 7", "bridge_receive_maximum", 7),
    ("bridge_protocol_version mqttv50 # c\nbridge_max_topic_alias 3", "bridge_max_topic_alias", 3),
    (
        "bridge_protocol_version mqttv50\nbridge_session_expiry_interval 4294967295",
        "bridge_session_expiry_interval",
        0xFFFFFFFF,
    ),
)


def bridges(text):
    return mosquitto_conf.load(scratch.write(text), LIMITS)[0].connections


class TestKeys(unittest.TestCase):
    def refused(self, text):
        """-> the one line that is said."""
        with self.assertRaises(ConfError, msg=text) as caught:
            mosquitto_conf.load(scratch.write(text), LIMITS)
        said = str(caught.exception)
        self.assertEqual(said.count("\n"), 0, said)
        return said

    def test_defaults_are_mosquittos(self):
        (one,) = bridges(BEGIN)
        self.assertEqual((one.name, one.addresses), ("up", [("h", 1883)]))
        found = one.keepalive_interval, one.restart_timeout, one.try_private, one.notifications
        self.assertEqual(found, (60, (5, 30), True, True))
        self.assertEqual((one.cleansession, one.local_cleansession), (False, None))

    def test_each_value(self):
        for lines, key, value in LINES:
            (one,) = bridges(f"{BEGIN}{lines}\n")
            self.assertEqual(getattr(one, key), value, lines)
        (one,) = bridges("connection up # c\naddresses a:1 [::1]:2 10.0.0.1 # two\ntopic a\n")
        hosts = [("a", 1), ("::1", 2), ("10.0.0.1", 1883)]
        self.assertEqual((one.name, one.addresses), ("up", hosts))

    def test_topics_as_mosquitto_reads_them(self):
        for line, name, out, comes, qos, prefixes in TOPICS:
            (one,) = bridges(f"connection up\naddress h\ntopic {line}\n")
            (found,) = one.topics
            self.assertEqual(found.filters, tuple([each + name for each in prefixes]), line)
            self.assertEqual((found.goes_out, found.comes_in, found.qos), (out, comes, qos), line)
            self.assertEqual(found.prefixes, prefixes, line)

    def test_addresses_as_mosquitto_reads_them(self):
        for text, wanted in ADDRESSES:
            if wanted:
                self.assertEqual(address_of(text), wanted)
                continue
            with self.assertRaises(ValueError, msg=text):
                address_of(text)

    def test_several_and_a_connection_ends_with_its_file(self):
        found = bridges(BEGIN + "max_qos 1\nconnection two\naddress g\ntopic a in\nclientid t\n")
        self.assertEqual([each.name for each in found], ["up", "two"])
        self.assertEqual([each.remote_clientid for each in found], [None, "t"])
        folder = scratch.path()
        os.mkdir(folder)  # noqa: PTH102
        with open(folder + "/a.conf", "w") as file:  # noqa: PTH123
            file.write(BEGIN.replace("up", "two"))
        include = f"include_dir {folder}\n"
        self.assertEqual([one.name for one in bridges(include + BEGIN)], ["two", "up"])
        said = self.refused(BEGIN + include + "topic b\n")
        self.assertIn(":5: topic: expected a connection above it in this", said)

    def test_each_mistake_is_one_line(self):
        found = [("connection up\n" + lines, line, part) for lines, line, part in MISTAKES]
        found += [("connection\n" + TWO, 1, "a value"), ("topic #", 1, "a connection above it")]
        for lines, line, part in found:
            text = lines.replace("{L}", "x" * 300).replace("{M}", "u" * 70000)
            said = self.refused(text)
            self.assertIn(f":{line}: ", said)
            self.assertIn(part, said)
        bridges(BEGIN + "remote_clientid a+\nnotifications false\n")

    def test_files_of_tls(self):
        path = scratch.write("no certificate")
        begin = f"{BEGIN}bridge_cafile {path}\n"
        for lines, part in (
            (f"bridge_certfile {path}\nbridge_keyfile {path}\n", "bridge_cafile: "),
            (f"bridge_keyfile {path}\n", "bridge_certfile and bridge_key"),
        ):
            said = self.refused(begin + lines)
            self.assertIn(":1: connection: expected " + part, said)
        with self.assertRaises(ValueError):
            load(options("a", ["h"], [("x",)], bridge_psk="00"))
        for key in ("bridge_alpn", "bridge_ciphers", "bridge_identity", "bridge_insecure"):
            value = True if key == "bridge_insecure" else "x"
            one = options("a", ["h"], [("x",)], **{key: value})
            self.assertEqual(tls_keys(one), [key])

    def test_a_reload_says_that_a_restart_is_needed(self):
        path = scratch.write(BEGIN)
        settings, limits, _, _ = mosquitto_conf.load(path, LIMITS)
        self.assertEqual(reload.reload(path, limits, settings)[1], [])
        path = scratch.write(BEGIN + "topic b in\n")
        self.assertEqual(reload.reload(path, limits, settings)[1], ["connection"])

    def test_the_budget_names_them(self):
        settings = Settings()
        sizes = []
        for prefix in ("", "l/"):
            self.assertNotIn("bridges", [row[0] for row in budget.rows(LIMITS, Settings())])
            settings.connections = [options("a", ["h"], [("x", "out", 0, prefix)])]
            sizes += [row[1] for row in budget.rows(LIMITS, settings) if row[0] == "bridges"]
        self.assertGreater(sizes[1], sizes[0] + 2 * LIMITS.topic_bytes)

    def test_each_wrong_value_of_a_program(self):
        for key, values in VALUES:
            for value in values:
                with self.assertRaises(ValueError) as caught:
                    one = options("up", ["h"], [("a",)], **{key: value})
                    check(one, LIMITS, Settings(mqtt_versions=5))
                self.assertIn(key, str(caught.exception))
        for arguments in CALLS:
            with self.assertRaises(ValueError, msg=str(arguments)) as caught:
                options(*arguments)
            self.assertGreater(len(str(caught.exception)), 4)
        for key, value in GOOD:
            one = options("up", ["h"], [("a",)], **{key: value})
            self.assertEqual(getattr(one, key), value)
        for key in ("nonsense", "lines"):
            with self.assertRaises(TypeError):
                options("a", ["h"], [("x",)], **{key: 1})
        self.assertEqual(options("a", clientid="c").remote_clientid, "c")
        with self.assertRaises(ValueError):
            topic("a", "out", 3)

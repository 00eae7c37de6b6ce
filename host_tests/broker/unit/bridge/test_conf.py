"""The keys below `connection NAME`."""

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
# Lines below `connection up`, the line that is named, and a part of what is said
MISTAKES = (
    ("topic a\n", 1, "connection: expected an address"),
    ("address h\n", 1, "connection: expected a topic"),
    ("address h:99999\ntopic a\n", 2, "address: expected an address"),
    (TWO + "address g\n", 4, "address: expected one line"),
    ("address mqtt://127.0.0.1:1883\ntopic a\n", 2, "address: expected an address"),
    ('address h\ntopic "abc out 1\n', 3, "topic: expected FILTER"),
    ("address h\ntopic $share/g/a out 1\n", 3, "topic: expected out without $share"),
    ("address 127.0.0.1 1884\ntopic a\n", 2, "a colon before the port"),
    ("address h\ntopic a b c\n", 3, "topic: expected a number from 0 to 2"),
    ("address h\ntopic a out 3\n", 3, "topic: expected a number from 0 to 2"),
    ("address h\ntopic a/#/b\n", 3, "topic: expected a topic filter"),
    (TWO + "keepalive_interval 70000\n", 4, "keepalive_interval: expected a number"),
    (TWO + "clientid {L}\n", 1, "a local_clientid of at most 64 bytes"),
    (TWO + "local_clientid {L}\n", 1, "a local_clientid of at most 64 bytes"),
    (
        TWO + "clientid {L}\nlocal_clientid x\nnotifications false\nusername {L}{L}\n",
        1,
        "tx_bytes 923",
    ),
    (TWO + "remote_username {M}\n", 1, "remote_username: at most 65535 bytes"),
    (TWO + "username u\npassword {M}\n", 1, "remote_password: at most 65535 bytes"),
    (TWO + "local_username {M}\n", 1, "local_username: at most 65535 bytes"),
    (TWO + "notification_topic {L}\n", 1, "a notification_topic of at most 256 bytes"),
    ("address h\ntopic a\nstart_type lazy\n", 1, "a topic out at QoS 1 or 2"),
    ("address h\ntopic a in 1\nstart_type lazy\n", 1, "a topic out at QoS 1 or 2"),
    (LAZY + "threshold 13\nlimit queued 12\n", 1, "threshold: at most 12"),
    (LAZY + "threshold 11\nlimit messages 20\n", 1, "threshold: at most 10"),
    (LAZY + "threshold 8\nmax_queued_messages 7\n", 1, "threshold: at most 7"),
    (LAZY + "cleansession true\n", 1, "local_cleansession false"),
    (TWO + "bridge_bind_address foo\n", 1, "bridge_bind_address: an IP address"),
    (TWO + "bridge_bind_address 127.0.0.256\n", 1, "bridge_bind_address: an IP address"),
    (TWO + "bridge_bind_address 1.2.3\n", 1, "bridge_bind_address: an IP address"),
)
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
    ("bridge_max_packet_size", 0),
    ("bridge_session_expiry_interval", None),
    ("local_cleansession", None),
    ("remote_password", None),
)
# Of options(): a name, addresses, topics
CALLS = (
    ("", ["h"], [("a",)]),
    (5, ["h"], [("a",)]),
    ("up", [5], [("a",)]),
    ("up", ["1884"], [("a",)]),
    ("up", ["h"], ["a/#"]),
    ("up", ["h"], [()]),
    ("up", ["h"], [("a", "out", 1, "", "", "")]),
    ("up", ["h"], [("a", "up")]),
    ("up", ["h"], [("a", "out", "1")]),
    ("up", ["h"], [("a", "out", 3)]),
    ("up", ["h"], [("a", "out", None)]),
    ("up", ["h"], [(None, "out")]),
    ("up", ["h"], [("a", "out", 1, None)]),
)


def bridges(text):
    return mosquitto_conf.load(scratch.write(text), LIMITS)[0].connections


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
)
ADDRESSES = (
    ("::1:1884", ("::1", 1884)),
    ("fe80::1:1884", ("fe80::1", 1884)),
    ("1:2:3:4:5:6:7:8:9", ("1:2:3:4:5:6:7:8", 9)),
    ("[fe80::1]:1884", ("fe80::1", 1884)),
    ("[::1]", ("::1", 1883)),
    ("h:1884", ("h", 1884)),
    ("h", ("h", 1883)),
)


class TestKeys(unittest.TestCase):
    def refused(self, text, line, key, part):
        path = scratch.write(text)
        with self.assertRaises(ConfError) as caught:
            mosquitto_conf.load(path, LIMITS)
        message = str(caught.exception)
        self.assertEqual(message.find(f"{path}:{line}: {key}: "), 0, message)
        self.assertIn(part, message)

    def test_defaults_are_mosquittos(self):
        (one,) = bridges(BEGIN)
        self.assertEqual((one.name, one.addresses), ("up", [("h", 1883)]))
        found = one.keepalive_interval, one.restart_timeout, one.try_private, one.notifications
        self.assertEqual(found, (60, (5, 30), True, True))
        self.assertEqual((one.cleansession, one.local_cleansession), (False, None))

    def test_each_value(self):
        text = (
            "addresses a:1 [::1]:2 10.0.0.1 [fe80::1]\ntopic x/# both 2 l/ r/\n"
            'topic y in\ntopic "" out 1 here there\ntopic z out 0 "" r/\n'
            "remote_clientid rid\nlocal_clientid lid\nremote_username ru\nremote_password rp\n"
            "local_username lu\ncleansession true\nlocal_cleansession false\n"
            "keepalive_interval 7\nrestart_timeout 2 9\ntry_private false\nnotifications false\n"
            "notifications_local_only true\nnotification_topic n\nbridge_bind_address 127.0.0.1\n"
            "bridge_protocol_version mqttv31\nbridge_attempt_unsubscribe false\n"
            "bridge_outgoing_retain false\nround_robin true\nstart_type lazy\nidle_timeout 8\n"
            "threshold 9\nbridge_max_packet_size 500\n"
        )
        (one,) = bridges("connection up\n" + text)
        hosts = [("a", 1), ("::1", 2), ("10.0.0.1", 1883), ("fe80::1", 1883)]
        self.assertEqual(one.addresses, hosts)
        found = [(t.filters, t.prefixes, t.goes_out, t.comes_in, t.qos) for t in one.topics]
        wanted = [
            ((b"l/x/#", b"r/x/#"), (b"l/", b"r/"), True, True, 2),
            ((b"y", b"y"), (b"", b""), False, True, 0),
            ((b"here", b"there"), (b"here", b"there"), True, False, 1),
            ((b"z", b"r/z"), (b"", b"r/"), True, False, 0),
        ]
        self.assertEqual(found, wanted)
        names = "remote_clientid local_clientid remote_username remote_password local_username"
        self.assertEqual(
            [getattr(one, name) for name in names.split()], ["rid", "lid", "ru", "rp", "lu"]
        )
        self.assertEqual((one.cleansession, one.local_cleansession), (True, False))
        self.assertEqual((one.keepalive_interval, one.restart_timeout), (7, (2, 9)))
        found = one.try_private, one.notifications, one.notifications_local_only
        self.assertEqual(found, (False, False, True))
        found = one.bridge_attempt_unsubscribe, one.bridge_outgoing_retain, one.round_robin
        self.assertEqual(found, (False, False, True))
        found = one.bridge_protocol_version, one.start_type, one.idle_timeout, one.threshold
        self.assertEqual(found, ("mqttv31", "lazy", 8, 9))
        self.assertEqual(one.bridge_max_packet_size, 500)
        self.assertEqual((one.notification_topic, one.bridge_bind_address), ("n", "127.0.0.1"))

    def test_keys_of_mqtt_5(self):
        text = (
            "bridge_protocol_version mqttv50\nbridge_receive_maximum 7\n"
            "bridge_session_expiry_interval 4294967295\nbridge_max_topic_alias 3\n"
            "bridge_max_packet_size 0\n"
        )
        (one,) = bridges(BEGIN + text)
        found = one.bridge_receive_maximum, one.bridge_session_expiry_interval
        self.assertEqual(found, (7, 0xFFFFFFFF))
        self.assertEqual((one.bridge_max_topic_alias, one.bridge_max_packet_size), (3, 0))

    def test_keys_of_tls(self):
        path = scratch.write("no certificate")
        begin = f"{BEGIN}bridge_cafile {path}\n"
        files = f"bridge_certfile {path}\nbridge_keyfile {path}\n"
        self.refused(f"{begin}{files}", 1, "connection", "bridge_cafile: ")
        key = "bridge_keyfile"
        self.refused(f"{begin}{key} {path}\n", 1, "connection", "bridge_certfile and bridge_key")
        key = "bridge_insecure"
        self.refused(f"{BEGIN}{key} perhaps", 4, key, "true or false")
        key = "bridge_tls_version"
        self.refused(f"{BEGIN}{key} tlsv1.1", 4, key, "tlsv1.2 or tlsv1.3")
        self.refused(f"{BEGIN}{key} tlsv1.2", 1, "connection", "bridge_tls_use_os_certs true")
        for key in ("bridge_cafile", "bridge_capath", "bridge_certfile", "bridge_keyfile"):
            self.refused(f"{BEGIN}{key} /not/there", 4, key, "can be read")
        self.refused(f"{BEGIN}bridge_capath /\n", 1, "connection", "bridge_capath: ")
        one = options("a", ["h"], [("x",)], bridge_psk="00")
        with self.assertRaises(ValueError):
            load(one)
        for key in ("bridge_alpn", "bridge_ciphers", "bridge_identity", "bridge_insecure"):
            value = True if key == "bridge_insecure" else "x"
            one = options("a", ["h"], [("x",)], **{key: value})
            self.assertEqual(tls_keys(one), [key])

    def test_topics_as_mosquitto_reads_them(self):
        for line, name, out, comes, qos, prefixes in TOPICS:
            (one,) = bridges(f"connection up\naddress h\ntopic {line}\n")
            (found,) = one.topics
            self.assertEqual(found.filters[0], prefixes[0] + name, line)
            self.assertEqual((found.goes_out, found.comes_in, found.qos), (out, comes, qos), line)
            self.assertEqual(found.prefixes, prefixes, line)
        for line in ('"a b', '"a b" out "c d" e', '"a b"c out', "a sideways", '""'):
            self.refused(BEGIN + "topic " + line, 4, "topic", "expected ")

    def test_addresses_as_mosquitto_reads_them(self):
        """It has no brackets: what stands behind the last colon is the port."""
        for text, wanted in ADDRESSES:
            self.assertEqual(address_of(text), wanted)
        for text in ("::1", "fe80::1", "1:2:3:4:5:6:7:8", "[::1", "g::1:1883", "1:2:3"):
            with self.assertRaises(ValueError, msg=text):
                address_of(text)

    def test_a_comment_behind_a_value(self):
        text = (
            "connection up # to town\naddresses h g:5 # two\ntopic a out # c\n"
            "cleansession true # c\nkeepalive_interval 7 # c\nrestart_timeout 1 2 3 # c\n"
            "bridge_protocol_version mqttv50 # c\nbridge_max_packet_size 500 # c\n"
            "remote_password a # b\nremote_username u\n"
        )
        (one,) = bridges(text)
        self.assertEqual((one.name, one.addresses), ("up", [("h", 1883), ("g", 5)]))
        self.assertEqual((one.cleansession, one.keepalive_interval), (True, 7))
        self.assertEqual((one.restart_timeout, one.bridge_max_packet_size), ((1, 2, 3), 500))
        self.assertEqual(one.remote_password, "a # b")  # it is part of a text

    def test_a_connection_ends_with_its_file(self):
        folder = scratch.path()
        os.mkdir(folder)  # noqa: PTH102
        with open(folder + "/a.conf", "w") as file:  # noqa: PTH123
            file.write(BEGIN.replace("up", "two"))
        include = f"include_dir {folder}\n"
        self.assertEqual([one.name for one in bridges(include + BEGIN)], ["two", "up"])
        self.refused(BEGIN + include + "topic b\n", 5, "topic", "a connection above it in this")

    def test_other_names(self):
        (one,) = bridges(BEGIN + "clientid c\nusername u\npassword p\nrestart_timeout 4\n")
        found = one.remote_clientid, one.remote_username, one.remote_password, one.restart_timeout
        self.assertEqual(found, ("c", "u", "p", 4))

    def test_several(self):
        found = bridges(BEGIN + "max_qos 1\nconnection two\naddress g\ntopic a in\nclientid t\n")
        self.assertEqual([each.name for each in found], ["up", "two"])
        self.assertEqual([each.remote_clientid for each in found], [None, "t"])

    def test_what_is_wrong(self):
        self.refused("topic #", 1, "topic", "a connection above it")
        self.refused("connection", 1, "connection", "a value")
        self.refused("connection a\ntopic #", 1, "connection", "an address, for a")
        self.refused("connection a\naddress h", 1, "connection", "a topic, for a")
        self.refused(BEGIN + "connection up", 4, "connection", "no earlier connection")
        for value in ("h:0", "h:x", "h:70000", "[::1", "[::1]1", "h:", "[::1]:", ":5", ""):
            self.refused(BEGIN + "address " + value, 4, "address", "expected ")
        bad = ("a up", "a out 3", "a/#/b", "a out 0 x/+/ y", '""', '"" out 0 x', "a out 0 b c d")
        for value in bad + ("",):  # noqa: RUF005
            self.refused(BEGIN + "topic " + value, 4, "topic", "expected ")
        for value in ("0", "9 2", "1 2 -3", "1 2 3 4", "9 2 9", "3601", "1 7201", "x", ""):
            self.refused(BEGIN + "restart_timeout " + value, 4, "restart_timeout", "expected ")
        self.refused(BEGIN + "password p", 1, "connection", "remote_username for remote_password")
        for line in ("notification_topic a/#", "remote_clientid a+"):
            self.refused(f"{BEGIN}{line}\n", 1, "connection", "without wildcards")
        bridges(BEGIN + "remote_clientid a+\nnotifications false\n")
        two = BEGIN + "clientid c\nconnection two\naddress g\ntopic a\n"
        for line in ("clientid c", "local_clientid local.c"):
            self.refused(two + line, 5, "connection", "a local_clientid that no earlier")
        self.refused(BEGIN + "mqtt_versions 3", 1, "connection", "mqtt_versions 5")
        self.refused(BEGIN + "topic " + "x" * 300, 1, "connection", "topic_bytes")
        many = "".join(f"connection b{k}\naddress h\ntopic a\n" for k in range(5))
        self.refused(many, 7, "connection", "at most 2, see limit bridges")
        self.refused(f"limit bridges 9\n{many}", 14, "connection", "see limit connections")
        self.refused(f"limit bridge_topics 1\n{many}", 5, "connection", "see limit bridge_topics")
        self.refused(f"{many}limit bridges 0\n", 1, "connection", "at most 0, see limit bridges")
        key = "bridge_protocol_version"
        self.refused(f"{BEGIN}{key} mqttv51", 4, key, "mqttv311 or mqttv31 or mqttv50")
        key = "bridge_max_packet_size"
        self.refused(f"{BEGIN}{key} 20", 4, key, "from 128 to")
        for key in (
            "bridge_receive_maximum",
            "bridge_session_expiry_interval",
            "bridge_max_topic_alias",
        ):
            self.refused(f"{BEGIN}{key} 5", 1, "connection", f"mqttv50 for {key}")
            self.refused(f"{BEGIN}{key} x", 4, key, "a number")

    def test_a_reload_says_that_a_restart_is_needed(self):
        path = scratch.write(BEGIN)
        settings, limits, _, _ = mosquitto_conf.load(path, LIMITS)
        self.assertEqual(reload.reload(path, limits, settings)[1], [])
        path = scratch.write(BEGIN + "topic b in\n")
        self.assertEqual(reload.reload(path, limits, settings)[1], ["connection"])

    def test_the_budget_names_them(self):
        settings = Settings()
        self.assertNotIn("bridges", [row[0] for row in budget.rows(LIMITS, settings)])
        settings.connections = [options("a", ["h"], [("x",)])]
        (plain,) = [row for row in budget.rows(LIMITS, settings) if row[0] == "bridges"]
        settings.connections = [options("a", ["h"], [("x", "out", 0, "l/")])]
        (mapped,) = [row for row in budget.rows(LIMITS, settings) if row[0] == "bridges"]
        self.assertGreater(mapped[1], plain[1] + 2 * LIMITS.topic_bytes)

    def test_each_mistake_is_one_line(self):
        """Of the whole file at once, and the start finds no other one."""
        begin = "connection up\n"
        found = [(begin + lines, line, part) for lines, line, part in MISTAKES]
        found.append(("connection\n" + TWO, 1, "a value"))
        found.append((begin + TWO + begin + TWO, 4, "no earlier connection"))
        for lines, line, part in found:
            text = lines.replace("{L}", "x" * 300).replace("{M}", "u" * 70000)
            with self.assertRaises(ConfError) as caught:
                mosquitto_conf.load(scratch.write(text), LIMITS)
            said = str(caught.exception)
            self.assertEqual(said.count("\n"), 0, said)
            self.assertIn(f":{line}: ", said)
            self.assertIn(part, said)

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
            options("up", ["h"], [("a",)], **{key: value})

    def test_options_of_python(self):
        with self.assertRaises(TypeError):
            options("a", ["h"], [("x",)], nonsense=1)
        with self.assertRaises(TypeError):
            options("a", ["h"], [("x",)], lines=1)
        self.assertEqual(options("a", clientid="c").remote_clientid, "c")
        self.assertEqual(address_of("h:5"), ("h", 5))
        with self.assertRaises(ValueError):
            topic("a", "out", 3)

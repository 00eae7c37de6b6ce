"""The configuration file: every key, the errors with their place, and a reload."""

import os
import unittest

import scratch

from slotmq.config import mosquitto_conf, other_keys, reload
from slotmq.config.limits import Limits
from slotmq.config.policies import WHEN_FULL, rows
from slotmq.config.settings import ConfError, Settings
from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON

SMALL = Limits(connections=4, inflight=10, queued=20)


def load(text, limits=SMALL):
    return mosquitto_conf.load(scratch.write(text), limits)[:2]


def settings(text):
    return load(text)[0]


KEYS = [row[0] for row in rows(mosquitto_conf.FIELDS)] + ["listeners"]
# A line for each kind of value that is no text
BEHIND = (
    "listener 1883 127.0.0.1",
    "listener 1883",
    "port 1884",
    "bind_address ::1",
    "max_connections 2",
    "global_max_connections 3",
    "socket_domain ipv4",
    "accept_protocol_versions 3, 5",
    "protocol mqtt",
    "require_certificate false",
    "autosave_interval 7",
    "limit queued 21",
    "allow_anonymous true",
    "max_keepalive 600",
    "max_queued_messages 5",
    "persistent_client_expiration 2h",
    "mqtt_versions 3",
    "per_listener_settings true",
    "log_type debug",
    "log_dest stdout",
    "log_dest stdout unbuffered",
    "when_full sessions refuse",
    "maximum_qos 1",
    "log_timestamp true",
)


# A configuration (` ; ` ends a line), a key of Settings and its value
VALUES = r"""
# one ;    ;   # two ; max_qos   	 1   ; 	sys_interval 5 => max_qos 1
# one ;    ;   # two ; max_qos   	 1   ; 	sys_interval 5 => sys_interval 5
pid_file /a#b # c => pid_file /a#b # c
pid_file /run/a b.pid => pid_file /run/a b.pid
record a/# # b => record (b'a/# # b',)
auto_id_prefix a # => auto_id_prefix b'a #'
auto_id_prefix 0123456789abcde => auto_id_prefix b'0123456789abcde'
max_qos 0 ; max_qos 1 => max_qos 1
password_file a ; password_file a => password_file a
maximum_qos 1 => max_qos 1
retained_persistence true => persistence True
queue_qos0_messages 1 => queue_qos0_messages True
retain_available 0 => retain_available False
qos2_delivery release => qos2_delivery release
max_queued_messages 90 ; limit deliveries 90 => max_queued_messages 90
max_queued_messages 0 => max_queued_messages 0
max_queued_messages -1 => max_queued_messages 0
max_queued_messages unlimited => max_queued_messages 0
max_connections 3 => max_connections 3
listener 1 ; max_connections 2 ; global_max_connections 3 => max_connections 3
global_max_connections 3 ; max_connections 2 => max_connections 2
global_max_connections 2 ; max_connections 3 => max_connections 2
global_max_connections 0 ; max_connections 2 => max_connections 2
global_max_connections 2 ; max_connections 0 => max_connections 2
global_max_connections -1 ; max_connections 0 => max_connections 0
log_type error => log_type 1
log_type error ; log_type debug => log_type 65
log_type all => log_type 127
log_type all ; log_type none => log_type 0
log_type error ; log_type websockets => log_type 1
log_dest topic ; log_dest stderr => log_dest ('topic', 'stderr')
log_dest none => log_dest ()
max_qos 1 => allow_anonymous True
listener 1883 => allow_anonymous False
allow_anonymous true ; listener 1883 => allow_anonymous True
listener 1 ; listener_allow_anonymous true => allow_anonymous False
listener 1 ; listener_allow_anonymous true ; use_username_as_clientid true \
=> use_username_as_clientid False
listener 1 ; allow_anonymous true ; listener 2 => allow_anonymous True
per_listener_settings true ; listener 1 ; allow_anonymous true => allow_anonymous False
per_listener_settings true ; listener 1 ; listener 2 ; password_file users => password_file users
per_listener_settings true ; listener 1 ; password_file a ; listener 2 ; password_file a \
=> password_file a
listener 1 ; acl_file a ; listener 2 ; acl_file a => acl_file a
persistent_client_expiration 0 => persistent_client_expiration 0
persistent_client_expiration 90 => persistent_client_expiration 90
persistent_client_expiration 90s => persistent_client_expiration 90
persistent_client_expiration 2h => persistent_client_expiration 7200
persistent_client_expiration 1d => persistent_client_expiration 86400
persistent_client_expiration 2w => persistent_client_expiration 1209600
persistent_client_expiration 3m => persistent_client_expiration 7776000
persistent_client_expiration 1y => persistent_client_expiration 31536000
limit tx_bytes 64 ; listener 1 ; listener_auto_id_prefix me- => max_qos 2
allow_anonymous true ; listener 1 ; per_listener_settings false => max_qos 2
"""
# A configuration, the line that is wrong, its key, a part of what is said. {A|B}: each of these
REFUSALS = r"""
max_qos 1# low => 1 max_qos
max_qos 1 low => 1 max_qos
max_qos 1 ; persistance true => 2 persistance a key of slotmq
 ; maximum_qos 3 => 2 maximum_qos 0 to 2
password_file a ; password_file b => 2 password_file :1
retain_available yes => 1 retain_available true or false
qos2_delivery later => 1 qos2_delivery receive or release
auto_id_prefix 0123456789abcdef => 1 auto_id_prefix 15
log_type loud => 1 log_type information or subscribe or unsubscribe or debug or all or none
log_dest {dlt|file|stdout stderr} => 1 log_dest file PATH
log_dest stdout ; log_dest file {/none/such/log|/} ; log_dest stderr \
=> 2 log_dest a file that can be written ([Errno
persistent_client_expiration {2y|d|1 d|1x|-1d|} => 1 persistent_client_expiration 50000000 seconds
sys_interval {1_0|+1|1.0|0x1|1e1|-0} => 1 sys_interval a number from 0 to 65535
limit queued {1_0|+1|1.0|0x1|1e1|-0} => 1 limit a number from 1 to 65000
limit {queued|queued x|queued -1|queued 1 2} => 1 limit
limit {rain|check|rows|replaced|__init__} 5 => 1 limit unknown limit
max_packet_size 9000 => 1 max_packet_size limit max_packet
global_max_connections none => 1 global_max_connections 1 to 65535
include_dir /none/such => 1 include_dir [Errno
max_queued_messages 20 ; limit deliveries 19 => 1 max_queued_messages 19
limit queued 65001 ; limit sessions 9 => 1 limit from 1 to 65000
 ; limit sessions 1 => 2 limit sessions
 ; limit sessions 1 ; limit queued 30 => 2 limit sessions: at least
limit queued 30 ; limit connections 9 ; limit inflight 12 => 2 limit at least 9, the value of conn
limit tx_bytes 64 ; auto_id_prefix me-and-you- => 2 auto_id_prefix 32
 ; max_keepalive 60 ; limit tx_bytes 64 => 3 limit tx_bytes; it takes 35
limit tx_bytes 64 ; listener 1 ; listener_auto_id_prefix me-and-you- => 1 limit tx_bytes
listener {0|65536|-1|1883 a b|mqtt} => 1 listener
listener 1883 ; listener 1883 => 2 listener
port 1883 ; listener 1883 => 2 listener
listener 1 ::1 ; listener 1 :: ; listener 1 ::1 => 3 listener
port 65536 => 1 port 1 to 65535
max_connections 5 => 1 max_connections limit connections
listener 1 ; max_connections 5 ; listener 2 ; max_connections 1 => 2 max_connections limit conn
 ; max_connections 5 ; listener 1 => 2 max_connections limit connections
max_connections 5 ; listener 1 ; max_connections 1 => 1 max_connections limit connections
 ; global_max_connections 5 ; listener 1 ; max_connections 2 => 2 global_max_connections limit con
socket_domain ipv4 => 1 socket_domain a listener above it
accept_protocol_versions 4 => 1 accept_protocol_versions a listener
listener 1 ; accept_protocol_versions {|,|6|3,x} => 2 accept_protocol_versions 3 or 4 or 5
listener 1 ::1 ; socket_domain ipv4 => 2 socket_domain ipv4
listener 1 127.0.0.1 ; socket_domain ipv6 => 2 socket_domain ipv6
listener 1 ; socket_domain unix => 2 socket_domain ipv4 or ipv6
listener_allow_anonymous true => 1 listener_allow_anonymous a listener above it
listener_auto_id_prefix a- => 1 listener_auto_id_prefix a listener above it
 ; per_listener_settings true ; allow_anonymous true => 3 allow_anonymous a listener above it
listener 1 ; allow_anonymous true ; per_listener_settings true \
=> 3 per_listener_settings a line above allow_anonymous
per_listener_settings true ; listener 1 ; password_file a ; password_file b => 4 password_file :3
per_listener_settings true ; listener 1 ; password_file a ; listener 2 ; password_file b \
=> 5 password_file one table of users
listener 1 ; acl_file a ; listener 2 ; acl_file b => 4 acl_file only with per_listener_settings
listener 1 ; protocol http_api => 2 protocol mqtt or websockets
listener 1 ; protocol websockets ; http_dir /no/folder => 3 http_dir a folder that can be read
listener 1 ; protocol websockets ; websockets_origin {a|http://a/|*} => 3 websockets_origin
protocol websockets => 1 protocol a listener above it
http_dir / => 1 http_dir a listener above it
listener 1{| ; protocol mqtt} ; http_dir / => 0 http_dir protocol websockets on the same listener
websockets_origin http://a => 1 websockets_origin a listener above it
listener 1{| ; protocol mqtt} ; websockets_origin http://a => 0 websockets_origin protocol web
"""
NEEDS_CPYTHON = r"""
log_dest syslog => 1 log_dest CPython
listener 0 /run/mqtt => 1 listener CPython
listener 1 ; bind_interface lo => 2 bind_interface CPython
"""
# A configuration, another one, what a reload changes, and what only a restart would
SAME = "listener 1883 ; limit queued 30 ; max_queued_messages 30 ; log_type all"
EACH = "per_listener_settings true ; listener 1 ; allow_anonymous %s"
RESTART = "port 1884 ; limit queued 30 ; pid_file a ; qos2_delivery release ; max_qos 0"
RELOADS = (
    (SAME, SAME, [], []),
    ("max_qos 1", "sys_interval 3", ["max_qos", "sys_interval"], []),
    ("port 1883", RESTART, ["max_qos"], ["limit", "listener", "pid_file", "qos2_delivery"]),
    ("global_max_connections 3", "max_qos 2 ; global_max_connections 2", ["max_connections"], []),
    (
        "listener 1 ; max_qos 1 ; listener 2",
        "listener 1 ; max_topic_alias 2 ; listener 2 ; max_qos 0",
        ["listener"],
        [],
    ),
    ("listener 1 ; max_qos 1", "listener 1 ; socket_domain ipv4 ; max_qos 0", [], ["listener"]),
    (EACH % "true ; password_file a", EACH % "false", [], ["listener", "password_file"]),
    (
        EACH % "true ; password_file a",
        EACH % "true ; auto_id_prefix a- ; password_file a",
        ["listener"],
        [],
    ),
)
# A configuration, and its listeners: host, port, max_connections, options
LISTENERS = r"""
max_qos 1 =>
port 1884 => None 1884 0
bind_address ::1 => ::1 1883 0
listener 1883 ; listener 1884 127.0.0.1 ; listener 1884 ::1 \
=> None 1883 0, 127.0.0.1 1884 0, ::1 1884 0
listener 1883 ; max_connections 2 ; listener 1884 ; max_connections -1 => None 1883 2, None 1884 0
max_connections 2 ; listener 1885 ; bind_address 127.0.0.1 ; port 1884 \
=> None 1885 0, 127.0.0.1 1884 2
max_qos 1 ; listener 1 ; max_qos 0 ; max_topic_alias 3 ; listener 2 ; max_topic_alias_broker 4 \
=> None 1 0 max_qos=0 max_topic_alias=3, None 2 0 max_topic_alias_broker=4
listener 1 ; accept_protocol_versions 3, 5 => None 1 0 accept_protocol_versions=40
listener 1 ; accept_protocol_versions 4 => None 1 0 accept_protocol_versions=16
listener 1 ; listener_allow_anonymous true ; listener 2 ; listener_auto_id_prefix two- \
 ; use_username_as_clientid true \
=> None 1 0 allow_anonymous=True, None 2 0 auto_id_prefix=b'two-' use_username_as_clientid=True
listener 1 ; allow_anonymous true ; password_file users ; listener 2 => None 1 0, None 2 0
per_listener_settings true ; listener 1 ; allow_anonymous true ; allow_zero_length_clientid false \
 ; listener 2 ; password_file users ; auto_id_prefix two- \
=> None 1 0 acl_file=None allow_anonymous=True allow_zero_length_clientid=False \
 password_file=None, None 2 0 acl_file=None auto_id_prefix=b'two-' password_file=users
per_listener_settings true ; listener 1 ; {allow_anonymous false ; listener_allow_anonymous true\
|listener_allow_anonymous true ; allow_anonymous false|allow_anonymous true} \
=> None 1 0 acl_file=None allow_anonymous=True password_file=None
per_listener_settings true ; port 1 ; allow_anonymous true \
=> None 1 0 acl_file=None allow_anonymous=True password_file=None
listener 1884 ; socket_domain ipv4 => 0.0.0.0 1884 0 socket_domain=ipv4
socket_domain ipv6 ; port 1884 => :: 1884 0 socket_domain=ipv6
port 9001 ; protocol websockets => None 9001 0 protocol=websockets
listener 1 ; protocol mqtt ; listener 2 ; protocol websockets ; websockets_origin http://a:1 \
 ; websockets_origin https://b ; http_dir / \
=> None 1 0 protocol=mqtt, None 2 0 http_dir=/ protocol=websockets \
 websockets_origin=('http://a:1', 'https://b')
"""
WITH_CPYTHON = r"""
listener 0 /run/mqtt ; listener 0 mqtt ; listener 1 ; bind_interface lo \
=> /run/mqtt 0 0, ./mqtt 0 0, None 1 0 bind_interface=lo
"""


def cases(table):
    """(configuration, what is said of it) of each line."""
    for line in table.strip("\n").replace("\\\n", "").split("\n"):
        text, _, then = line.partition(" =>")
        begin, _, rest = text.partition("{")
        middle, _, end = rest.partition("}")
        for each in middle.split("|"):
            yield (begin + each + end).replace(" ; ", "\n"), " ".join(then.split())


class Case(unittest.TestCase):
    def refused(self, text, line, key, *parts):
        """The text is refused at that line and key, and the message has those parts."""
        path = scratch.write(text)
        with self.assertRaises(ConfError) as caught:
            mosquitto_conf.load(path, SMALL)
        message = str(caught.exception)
        self.assertEqual(message.find(f"{path}:{line}: {key}: expected "), 0, message)
        for part in parts:
            self.assertIn(part, message)


class TestTables(Case):
    def test_values(self):
        for text, then in cases(VALUES):
            key, _, value = then.partition(" ")
            self.assertEqual(str(getattr(settings(text), key)), value, text)

    def test_what_is_refused(self):
        for text, then in cases(REFUSALS + (NEEDS_CPYTHON[1:] if MICROPYTHON else "")):
            line, key, *parts = then.split(" ", 2)
            number = int(line) or text.count("\n") + 1
            self.refused(text, number, key, *parts)

    def test_bytes_of_utf_8_and_others(self):
        mark = b"\xef\xbb\xbf"  # an editor puts it before the text
        self.assertEqual(settings(mark + b"max_qos 1\r\n").max_qos, 1)
        self.refused(mark + b"max_qos 1\n" + mark + b"max_qos 1", 2, "\ufeffmax_qos")
        self.refused(b"max_qos 1\nmax_qos \xff\n", 2, "line", "UTF-8")

    def test_listeners(self):
        for text, wanted in cases(LISTENERS + ("" if MICROPYTHON else WITH_CPYTHON[1:])):
            found = []
            for host, port, most, own in settings(text).listeners:
                options = [f" {key}={own[key]}" for key in sorted(own)]
                found.append(f"{host} {port} {most}{''.join(options)}")
            self.assertEqual(", ".join(found), wanted, text)

    def test_other_digits_are_none(self):
        self.refused("sys_interval \u0661", 1, "sys_interval", "a number from 0 to 65535")


class TestSyntax(Case):
    def test_an_empty_file_is_the_defaults(self):
        found = settings("")
        for row in rows(mosquitto_conf.FIELDS):
            key = row[0]
            self.assertEqual(getattr(found, key, None), getattr(Settings(), key, None), key)

    def test_a_comment_may_stand_behind_each_other_value(self):
        for line in BEHIND:
            for comment in ("# x", "#x", " # true 7", "\t# x"):
                without, limits = load("listener 1\n" + line)
                found, same = load(f"listener 1\n{line} {comment}")
                for key in vars(without) if not MICROPYTHON else KEYS:
                    wanted = getattr(without, key, None)
                    self.assertEqual(getattr(found, key, None), wanted, line)
                self.assertEqual(same.queued, limits.queued)
        for row in rows(mosquitto_conf.FIELDS):
            if row[2] not in mosquitto_conf._WHOLE.split():
                self.refused(row[0] + " # x", 1, row[0])
        self.refused("max_qos 1# low", 1, "max_qos")
        self.refused("max_qos 1 low", 1, "max_qos")

    def test_the_line_of_an_error_is_its_own(self):
        self.refused("# one\n\nmax_qos 1\nmax_qos 3\nmax_qos 4\n", 4, "max_qos", "0 to 2")

    def test_a_key_without_its_value(self):
        for row in rows(mosquitto_conf.FIELDS):
            with self.subTest(key=row[0]):
                self.refused(row[0], 1, row[0])

    def test_a_value_of_no_kind(self):
        for row in rows(mosquitto_conf.FIELDS):
            if row[2] not in ("text", "prefix", "address", "rules"):
                with self.subTest(key=row[0]):
                    self.refused(row[0] + " ?", 1, row[0])

    def test_a_missing_file(self):
        path = scratch.path()
        with self.assertRaises(ConfError) as caught:
            mosquitto_conf.load(path, SMALL)
        expected = f"{path}: expected a file that can be read ([Errno 2] "
        self.assertEqual(str(caught.exception)[: len(expected)], expected)

    def test_a_folder_is_no_file(self):
        with self.assertRaises(ConfError):
            mosquitto_conf.load("/", SMALL)


class TestAllErrors(Case):
    def errors(self, text):
        path = scratch.write(text)
        with self.assertRaises(ConfError) as caught:
            mosquitto_conf.load(path, SMALL)
        return [line.replace(path, "conf") for line in str(caught.exception).split("\n")]

    def test_a_text_has_one_value_for_each_listener(self):
        text = "listener 1\nciphers A\nlistener 2\nciphers B\n"
        found = self.errors(text + "ciphers C")
        self.assertIn("conf:5: ciphers: expected one value; there is another at conf:4", found)
        self.assertFalse([line for line in self.errors(text) if "one value" in line])

    def test_every_error_has_its_line_in_the_order_of_the_file(self):
        found = self.errors(
            "max_qos 3\nmax_packet_size 9000\nlistener x\npersistance true\nsys_interval 1\n"
            "limit queued 5 5\nmax_qos \xff\nlog_type loud\n"
        )
        places = [line.split(": ")[:2] for line in found]
        wrong = ["max_qos", "listener", "persistance", "limit", "max_qos", "log_type"]
        lines = [1, 3, 4, 6, 7, 8]
        self.assertEqual(places, [[f"conf:{n}", key] for n, key in zip(lines, wrong)])  # noqa: B905 - MicroPython

    def test_sizes_are_compared_unless_a_limit_is_wrong(self):
        sizes = "max_queued_messages 300\nmax_inflight_messages 200\n"
        found = self.errors(sizes + "max_qos 3\n")
        self.assertEqual([line[:7] for line in found], ["conf:1:", "conf:2:", "conf:3:"])
        found = self.errors(sizes + "limit queued much\n")
        self.assertEqual([line[:7] for line in found], ["conf:3:"])

    def test_what_stands_below_a_wrong_listener_is_not_blamed(self):
        below = "allow_anonymous true\nprotocol websockets\nmax_connections 2\nmax_qos 3\n"
        found = self.errors("per_listener_settings true\nlistener mqtt\n" + below)
        self.assertEqual([line[:7] for line in found], ["conf:2:", "conf:6:"])

    def test_bytes_that_are_no_text_are_one_of_them(self):
        path = scratch.write(b"max_qos 3\nmax_qos \xff\n")
        with self.assertRaises(ConfError) as caught:
            mosquitto_conf.load(path, SMALL)
        lines = str(caught.exception).split("\n")
        self.assertEqual(lines[1], f"{path}:2: line: expected UTF-8")
        self.assertEqual(len(lines), 2)

    def test_a_board_keeps_ten(self):
        small, ondemand.IS_SMALL = ondemand.IS_SMALL, True
        try:
            found = self.errors("max_qos 3\n" * 10)
            self.assertEqual(len(found), 10)
            found = self.errors("max_qos 3\n" * 12)
        finally:
            ondemand.IS_SMALL = small
        self.assertEqual((len(found), found[10]), (11, "2 more errors"))

    def test_a_computer_has_them_all(self):
        if not MICROPYTHON:
            self.assertEqual(len(self.errors("max_qos 3\n" * 40)), 40)

    def test_what_was_meant(self):
        meant = "; did you mean persistence?"
        (line,) = self.errors("persistance true")
        self.assertEqual(line.endswith(meant), not MICROPYTHON, line)
        (line,) = self.errors("limit inflihgt 3")
        self.assertEqual(line.endswith("; did you mean inflight?"), not MICROPYTHON, line)
        (line,) = self.errors("qwertz 1")
        self.assertFalse("did you mean" in line, line)


class TestOtherKeys(Case):
    def read(self, text):
        path = scratch.write(text)
        found, _, _, warnings = mosquitto_conf.load(path, SMALL)
        return found, [line.replace(path, "conf") for line in warnings]

    def test_each_row_is_whole(self):
        served = [row[0] for row in rows(mosquitto_conf.FIELDS)]
        seen = set()
        for status, keys, text in other_keys.rows():
            self.assertIn(status, ("alias", "bridge", "ignored", "plugin", "refused"))
            self.assertTrue(text)
            if status == "alias":
                self.assertIn(text, served)
            for key in keys.split():
                key = key.split("=")[0]
                self.assertFalse(key in served or key in seen, key)
                seen.add(key)
        self.assertEqual(sorted(other_keys.names()), sorted(k for k in seen if k[-1] != "*"))

    def test_each_refused_key_ends_the_start(self):
        for status, keys, text in other_keys.rows():
            for key in keys.split():
                key = key.split("=")[0].replace("*", "x")
                if status == "refused":
                    with self.subTest(key=key):
                        with self.assertRaises(ConfError) as caught:
                            load(f"max_qos 1\n{key} ?")
                        self.assertTrue(f":2: {key}: not served: {text}" in str(caught.exception))

    def test_each_ignored_key_gives_one_warning_with_its_line(self):
        for status, keys, text in other_keys.rows():
            for key in keys.split():
                key = key.split("=")[0]
                if status == "ignored":
                    _, warnings = self.read(f"max_qos 1\n{key} ?")
                    self.assertEqual(warnings, [f"conf:2: {key} has no effect: {text}"])

    def test_a_value_that_says_what_the_broker_does_gives_no_warning(self):
        for _, keys, _ in other_keys.rows():
            for key in keys.split():
                if "=" in key:
                    key, value = key.split("=")
                    digit = {"true": "1", "false": "0"}.get(value, value)
                    _, warnings = self.read(f"{key} {value}\n{key} {digit}")
                    self.assertEqual(warnings, [])

    def test_secrets_below_http_dir_are_warned_of(self):
        """Users, keys, the journal, recordings and the log: everybody could read them."""
        folder = scratch.path()
        os.mkdir(folder)  # noqa: PTH102
        os.mkdir(folder + "/sub")  # noqa: PTH102
        os.mkdir(folder + "-other")  # noqa: PTH102
        web = f"listener 9001\nprotocol websockets\nhttp_dir {folder}/\n"
        for key, lines in (
            ("password_file", "password_file %s/users"),
            ("acl_file", "acl_file %s/sub/rules"),
            ("persistence_location", "persistence true\npersistence_location %s/sub/"),
            ("persistence_location", "persistence true\npersistence_location %s"),
            ("record_location", "record #\nrecord_location %s/rec"),
            ("log_dest", "log_dest file %s/log.txt"),
        ):
            for where, number in ((folder, 1), (folder + "-other", 0)):
                _, warnings = self.read(web + lines % where)
                self.assertEqual(len(warnings), number, warnings)
                for line in warnings:
                    self.assertIn(f"http_dir {folder}/: everybody can read {key} {where}", line)
        path = scratch.write("")
        parent = path[: path.rindex("/")]
        _, _, _, warnings = mosquitto_conf.load(
            self.write_over(path, web.replace(folder, parent)), SMALL
        )
        self.assertIn("everybody can read the configuration", warnings[0])

    def write_over(self, path, text):
        with open(path, "w") as file:  # noqa: PTH123
            file.write(text)
        return path


class TestIncludeDir(Case):
    def folder(self, **files):
        folder = scratch.path()
        os.mkdir(folder)  # noqa: PTH102
        for name in files:
            with open(f"{folder}/{name}.conf", "wb") as file:  # noqa: PTH123
                file.write(files[name].encode())
        return folder

    def test_files_are_read_in_the_order_of_their_names(self):
        folder = self.folder(b="max_qos 1", a="max_qos 0\nsys_interval 7", B="sys_interval 5")
        with open(folder + "/c.config", "w") as file:  # noqa: PTH123
            file.write("not a conf")
        found = settings(f"max_qos 2\ninclude_dir {folder}/")
        self.assertEqual((found.max_qos, found.sys_interval), (1, 7))
        self.assertEqual(settings(f"include_dir {folder}\nmax_qos 2").max_qos, 2)

    def test_an_error_names_its_own_file_and_line(self):
        folder = self.folder(a="max_qos 1\nmax_qos 3", b="\nlimit inflight 9")
        path = scratch.write(f"max_qos 4\ninclude_dir {folder}\nmax_qos 5\n")
        with self.assertRaises(ConfError) as caught:
            mosquitto_conf.load(path, SMALL)
        places = [line.split(": ")[0] for line in str(caught.exception).split("\n")]
        self.assertEqual(places, [path + ":1", path + ":3", folder + "/a.conf:2"])

    def test_the_place_of_a_value_that_contradicts_is_in_the_included_file(self):
        folder = self.folder(a="\nmax_queued_messages 300")
        with self.assertRaises(ConfError) as caught:
            load(f"include_dir {folder}")
        self.assertIn(f"{folder}/a.conf:2: max_queued_messages: ", str(caught.exception))

    def test_each_file_begins_above_its_first_listener(self):
        folder = self.folder(a="max_connections 3\nlistener 1\nmax_connections 1", b="listener 2")
        text = f"listener 3\ninclude_dir {folder}\nmax_connections 2"
        found = settings(text)
        self.assertEqual(found.listeners, [(None, 3, 2, {}), (None, 1, 1, {}), (None, 2, 0, {})])
        self.assertEqual(found.max_connections, 3)

    def test_bad_folders(self):
        self.refused("include_dir /none/such", 1, "include_dir", "[Errno ")
        self.refused("include_dir", 1, "include_dir")
        folder = self.folder(a="\ninclude_dir /etc")
        with self.assertRaises(ConfError) as caught:
            load(f"include_dir {folder}")
        self.assertIn(f"{folder}/a.conf:2: include_dir: ", str(caught.exception))


class TestValues(Case):
    def test_flags(self):
        for row in rows(mosquitto_conf.FIELDS):
            if row[2] == "flag" and row[0][:9] != "listener_":
                for value in (True, False):
                    text = "true" if value else "false"
                    found = settings(f"{row[0]} {text}")
                    self.assertIs(getattr(found, row[0]), value)
        self.refused("retain_available yes", 1, "retain_available", "true or false")

    def test_numbers_within_their_bounds(self):
        for row in rows(mosquitto_conf.FIELDS):
            if row[2] == "number":
                key, low, high = row[0], int(row[3]), int(row[4])
                self.assertEqual(getattr(settings(f"{key} {low}"), key), low)
                self.assertEqual(getattr(settings(f"{key} {high}"), key), high)
                self.refused(f"{key} {low - 1}", 1, key, row[3], row[4])
                self.refused(f"{key} {high + 1}", 1, key, row[3], row[4])

    def test_sizes_up_to_their_table(self):
        """The limits of messages for one client are the defaults only."""
        most = SMALL.deliveries
        for key in ("max_inflight_messages", "max_queued_messages"):
            self.assertEqual(getattr(settings(f"{key} {most}"), key), most)
            self.refused(f"\n{key} {most + 1}", 2, key, f"at most {most}, see limit deliveries")
            found = settings(f"{key} 30000\nlimit deliveries 30000")
            self.assertEqual(getattr(found, key), 30000)
        self.refused("max_packet_size 9000", 1, "max_packet_size", "limit max_packet")

    def test_a_larger_packet_raises_the_limit_of_a_computer(self):
        """No buffer is touched before a packet of that size comes. A line of the limit counts."""
        computer = Limits(max_packet=1 << 20, message_bytes=2 << 20, message_block=512)
        for key in ("max_packet_size", "message_size_limit"):
            for size in (20000000, 268435455):
                found = load(f"{key} {size}", computer)[1]
                self.assertEqual(found.max_packet, size)
                self.assertEqual(found.message_bytes, 2 << 20)
                self.assertEqual(found.reassembly, 1 if MICROPYTHON else computer.reassembly)
        self.assertEqual(load("max_packet_size 500000", computer)[1].max_packet, 1 << 20)
        self.assertEqual(load("limit max_packet 268435455", computer)[1].max_packet, 268435455)
        with self.assertRaises(ConfError):
            load("max_packet_size 20000000\nlimit max_packet 1048576", computer)

    def test_what_mosquitto_takes_for_no_bound(self):
        for key in ("max_inflight_bytes", "max_queued_bytes", "autosave_interval"):
            self.assertEqual(getattr(settings(f"{key} -1"), key, 0), 0)

    def test_log_destinations_add_up(self):
        path = scratch.path() + " b"
        found = settings(f"log_dest stdout\nlog_dest file {path}\n")
        self.assertEqual(found.log_dest, ("stdout", "file " + path))
        found = settings("log_dest topic\nlog_dest stderr\n")
        self.assertEqual(found.log_dest, ("topic", "stderr"))
        self.assertEqual(settings("log_dest none").log_dest, ())
        for bad in ("dlt", "file", "stdout stderr"):
            self.refused("log_dest " + bad, 1, "log_dest", "file PATH")

    def test_syslog_needs_cpython(self):
        if MICROPYTHON:
            self.refused("log_dest syslog", 1, "log_dest", "CPython")
            return
        found = settings("log_dest topic\nlog_dest syslog\nlog_facility 5")
        self.assertEqual((found.log_dest, found.log_facility), (("topic", "syslog"), 5))
        reader = mosquitto_conf.Reader("conf", SMALL, is_foreign=mosquitto_conf.OF_BOARD)
        reader.read([b"log_dest topic", b"log_dest syslog"])
        with self.assertRaises(ConfError) as caught:
            reader.finish()
        self.assertEqual(str(caught.exception).find("conf:2: log_dest: expected "), 0)

    def test_policies(self):
        for row in rows(WHEN_FULL):
            for policy in row[1:]:
                found = settings(f"when_full {row[0]} {policy}").when_full
                self.assertEqual(found[row[0]], policy)
                self.assertEqual(len(found), len(rows(WHEN_FULL)))
        for bad in ("messages", "messages wait", "rain wait", "messages drop_newest x"):
            self.refused("when_full " + bad, 1, "when_full", "retained refuse;", "wait")
            with self.assertRaises(ConfError) as caught:
                settings("when_full " + bad)
            self.assertTrue(str(caught.exception).endswith("; reassembly wait"))


class TestLimits(Case):
    def test_lines_resize_tables(self):
        _, limits = load("limit inflight 12\nlimit queued 30\nlimit queued 31\n")
        self.assertEqual((limits.inflight, limits.queued), (12, 31))
        self.assertEqual((SMALL.inflight, SMALL.queued), (10, 20))

    def test_sizes_are_compared_when_all_lines_are_read(self):
        found, _ = load("max_queued_messages 90\nlimit deliveries 90\n")
        self.assertEqual(found.max_queued_messages, 90)
        self.refused("max_queued_messages 20\nlimit deliveries 19", 1, "max_queued_messages", "19")

    def test_texts_that_make_connack_too_long(self):
        text = "x" * 330
        for key in ("response_information", "server_reference"):
            self.refused(f"\n{key} {text}", 2, key, "a CONNACK of at most 320 bytes")
            settings(f"{key} {text}\nlimit tx_bytes 800")
            settings(f"{key} {text}\nmqtt_versions 3")
        self.refused("limit tx_bytes 64\nauto_id_prefix me-and-you-", 2, "auto_id_prefix", "32")
        self.refused("\nmax_keepalive 60\nlimit tx_bytes 64", 3, "limit", "tx_bytes; it takes 35")


class TestListeners(Case):
    def test_where_they_stand(self):
        text = "\nport 1\nbind_address ::1\nlistener 2\nlistener 3 ::1\n"
        path = scratch.write(text)
        places = mosquitto_conf.load(path, SMALL)[2]
        self.assertEqual(places["::1", 1], ("bind_address", f"{path}:3"))
        self.assertEqual(places[None, 2], ("listener", f"{path}:4"))
        self.assertEqual(places["::1", 3], ("listener", f"{path}:5"))
        path = scratch.write("\nport 1")
        places = mosquitto_conf.load(path, SMALL)[2]
        self.assertEqual(places[None, 1], ("port", f"{path}:2"))

    def test_a_board_has_neither_when_its_file_is_read_on_a_computer(self):
        reader = mosquitto_conf.Reader("conf", SMALL, is_foreign=mosquitto_conf.OF_BOARD)
        reader.read([b"listener 0 /run/mqtt", b"listener 1", b"bind_interface lo"])
        with self.assertRaises(ConfError) as caught:
            reader.finish()
        lines = [line[: line.find(": expected")] for line in str(caught.exception).split("\n")]
        self.assertEqual(lines, ["conf:1: listener", "conf:3: bind_interface"])

    def test_rules_of_each_listener(self):
        text = "per_listener_settings true\nlistener 1\nacl_file a\nlistener 2\n"
        self.assertEqual(settings(text + "acl_file a").acl_file, "a")
        for more, second in (("acl_file b", "b"), ("", None)):
            if MICROPYTHON:
                self.refused(text + more, 3 if not more else 5, "acl_file", "on a board the same")
                continue
            found = settings(text + more)
            self.assertEqual(found.acl_file, "a")
            self.assertEqual([each[3]["acl_file"] for each in found.listeners], ["a", second])
            reader = mosquitto_conf.Reader("x", SMALL, is_foreign=mosquitto_conf.OF_BOARD)
            reader.read((text + more).encode().split(b"\n"))
            with self.assertRaises(ConfError) as caught:
                reader.finish()
            self.assertIn("on a board the same file below each listener", str(caught.exception))


class TestReload(Case):
    def test_what_changes_and_what_needs_a_restart(self):
        for before, after, changed, refused in RELOADS:
            found, limits = load(before.replace(" ; ", "\n"))
            was, kept = (
                settings(before.replace(" ; ", "\n")),
                [each[3] for each in found.listeners],
            )
            path = scratch.write(after.replace(" ; ", "\n"))
            done, only_a_start, _ = reload.reload(path, limits, found)
            self.assertEqual((sorted(done), sorted(only_a_start)), (changed, refused), after)
            new, _ = load(after.replace(" ; ", "\n"))
            for keys, wanted in ((changed, new), (refused, was)):
                for key in keys:
                    key = "listeners" if key == "listener" else key
                    value = getattr(wanted, key, None)
                    self.assertEqual(getattr(found, key, None), value, key)
            for own, before in zip([each[3] for each in found.listeners], kept):  # noqa: B905
                self.assertIs(own, before)  # the quota of the open listener refers to it

    def test_a_bad_file_changes_nothing(self):
        """Sizes are compared with the tables that there are."""
        for after in ("max_qos 0\nmax_qos 3", "limit deliveries 90\nmax_queued_messages 90"):
            found, limits = load("max_qos 1\n")
            with self.assertRaises(ConfError):
                reload.reload(scratch.write(after), limits, found)
            self.assertEqual(found.max_qos, 1)

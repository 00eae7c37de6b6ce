"""`slotmq config check` with files of mosquitto as users have them: all that is wrong, at once."""

import ssl
import subprocess
from pathlib import Path

import pytest

from slotmq_dev.peers import mosquitto
from slotmq_tools.config.check import check

HOME = """\
# A server at home
per_listener_settings false
user mosquitto
pid_file /run/mosquitto/mosquitto.pid

persistence true
persistence_location /var/lib/mosquitto/
autosave_interval 300
persistent_client_expiration 14d

log_dest syslog
log_dest topic
log_facility 3
log_type error
log_type warning
log_type websockets
log_timestamp true
log_timestamp_format %Y-%m-%dT%H:%M:%S
connection_messages true

listener 1883
protocol mqtt
max_connections -1
maximum_qos 2
listener 0 /run/mosquitto/mqtt.sock

allow_anonymous false
password_file /etc/mosquitto/passwd

max_inflight_messages 20
max_queued_bytes 100000
max_packet_size 100000
queue_qos0_messages false
global_max_connections 100
sys_interval 10
"""
TLS = """\
# A server in the internet, and a listener for its own programs
global_max_connections 200
plugin_load passwords /usr/lib/mosquitto_password_file.so
plugin_opt_password_file /etc/mosquitto/passwd
plugin_load rules /usr/lib/mosquitto_dynamic_security.so
plugin_opt_config_file /var/lib/mosquitto/rules.json

listener 1883 127.0.0.1
plugin_use passwords
listener_allow_anonymous true

listener 8883
plugin_use passwords
cafile /etc/mosquitto/ca.crt
certfile /etc/mosquitto/server.crt
keyfile /etc/mosquitto/server.key
tls_version tlsv1.3
require_certificate true
use_identity_as_username true

listener 8884
plugin_use passwords
psk_hint home
psk_file /etc/mosquitto/psk
ciphers PSK-AES128-CBC-SHA

listener 9001
plugin_use passwords
protocol websockets
"""
BRIDGE = """\
# A broker that sends what it gets to another one
listener 1883
allow_anonymous true
max_inflight_bytes 0
memory_limit 1000000

connection cloud
address mqtt.example.org:8883
remote_username field
remote_password secret
remote_clientid field-7
cleansession false
topic sensors/# out 1 "" site/7/
topic commands/# in 1
bridge_protocol_version mqttv50
bridge_cafile /etc/ssl/certs/ca.crt
bridge_insecure false
restart_timeout 10 60
notifications false
"""


def checked(text: str, folder: Path) -> tuple[list[tuple[int, str, str]], list[tuple[int, str]]]:
    """The errors (line, key, text) and the warnings (line, text).

    `folder` is the folder that the file names, with users."""
    for path in ("/etc/mosquitto", "/run/mosquitto", "/var/lib/mosquitto", "/var/log/mosquitto"):
        text = text.replace(path, str(folder))
    (folder / "passwd").touch()
    file = folder / "mosquitto.conf"
    file.write_text(text)
    errors, warnings = check(file, "HOST")
    found = []
    for each in errors:
        place, key, why = each.split(": ", 2)
        assert place.startswith(f"{file}:")
        found.append((int(place.rpartition(":")[2]), key, why))
    return found, [
        (int(place.rpartition(":")[2]), why)
        for place, why in (each.split(": ", 1) for each in warnings)
    ]


def line_of(text: str, line: str) -> int:
    return text.splitlines().index(line) + 1


def test_a_server_at_home_works_as_it_is(tmp_path: Path) -> None:
    errors, warnings = checked(HOME, tmp_path)
    assert errors == []
    without_effect = ["user mosquitto", "log_timestamp_format %Y-%m-%dT%H:%M:%S"]
    assert [at for at, _ in warnings] == [line_of(HOME, line) for line in without_effect]
    assert all(" has no effect: " in why for _, why in warnings)


def test_a_server_with_tls_is_refused_for_its_plugin_keys(tmp_path: Path) -> None:
    errors, _ = checked(TLS, tmp_path)
    has_psk = hasattr(ssl.SSLContext, "set_psk_server_callback")  # from CPython 3.13 on
    keys = "" if has_psk else "psk_hint psk_file"
    others = "plugin_load plugin_opt_config_file"
    assert [key for _, key, _ in errors] == [*others.split(), *keys.split()]
    assert errors[0][0] == line_of(TLS, "plugin_load rules /usr/lib/mosquitto_dynamic_security.so")
    reasons = {key: why for _, key, why in errors}
    if not has_psk:
        assert "TLS with shared keys needs CPython 3.13" in reasons["psk_hint"]
        assert reasons["psk_file"].startswith("not served: as line ")


def test_a_broker_with_a_bridge_is_refused_with_each_reason(tmp_path: Path) -> None:
    errors, warnings = checked(BRIDGE, tmp_path)
    assert warnings == []
    assert [key for _, key, _ in errors] == [
        "memory_limit"
    ]  # the files of TLS are looked at where it runs
    shown = "".join(why for _, _, why in errors)
    assert "secret" not in shown


def test_the_file_of_a_new_installation(tmp_path: Path) -> None:
    text = mosquitto.installed().read_text()
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d/own.conf").write_text("listener 1883\nallow_anonymous true\n")
    assert checked(text, tmp_path) == ([], [])


def test_the_example_with_everything_commented_out(tmp_path: Path) -> None:
    assert checked(mosquitto.example().read_text(), tmp_path) == ([], [])


def test_the_example_with_every_key_that_has_a_default(tmp_path: Path) -> None:
    """Each default of mosquitto 2.0 is accepted."""
    lines = [
        line[1:] if line[:1] == "#" and line[1:2].isalpha() else ""
        for line in mosquitto.example().read_text().splitlines()
    ]
    first = next(at for at, line in enumerate(lines) if line.startswith("connection "))
    lines = [line if len(line.split()) == 2 else "" for line in lines[:first]]
    assert len([line for line in lines if line]) > 30
    errors, warnings = checked("listener 1883\n" + "\n".join(lines[1:]), tmp_path)
    assert errors == []
    assert {why.split()[0] for _, why in warnings} <= {"user", "check_retain_source"}


def test_every_key_of_the_example_is_known(tmp_path: Path) -> None:
    keys = {
        line[1:].split()[0]
        for line in mosquitto.example().read_text().splitlines()
        if line[:1] == "#" and line[1:2].isalpha()
    }
    errors, _ = checked("".join(f"{key} ?\n" for key in sorted(keys)), tmp_path)
    assert len(keys) > 80
    assert [key for _, key, why in errors if "a key of slotmq or mosquitto" in why] == []


BRIDGE_OF = "connection up", "address 127.0.0.1"
# Lines; does this broker read the last one, and does mosquitto 2.0?
HABITS = (
    (("listener 1883 127.0.0.1 # house",), True, True),
    (("listener 1883 # house",), True, True),
    (("port 1883 # house",), True, True),
    (("max_keepalive 600 # x",), True, True),
    (("allow_anonymous true # x",), True, True),
    (("log_type error # x",), True, True),
    (("log_dest stdout # x",), True, True),
    (("log_dest stdout unbuffered",), True, True),
    (("persistent_client_expiration 2h # x",), True, True),
    (("per_listener_settings true", "per_listener_settings false"), True, True),
    (("listener 1", "max_connections -7"), True, True),
    (("listener 1", "protocol mqtt # x"), True, True),
    (("listener 1", "socket_domain ipv4 # x"), True, True),
    (("max_queued_messages 10000",), True, True),
    (("max_queued_messages 0",), True, True),
    (("max_inflight_messages 1000",), True, True),
    (("max_queued_bytes -5",), True, True),
    (("max_inflight_bytes -5",), True, True),
    (("autosave_interval -5",), True, True),
    (("pid_file /tmp/x # y",), True, True),
    (("pid_file /a", "pid_file /b"), False, False),
    (("max_qos low",), False, True),  # as 0; refused in 2.1
    (("max_keepalive 60s",), False, True),  # as 60; refused in 2.1
    (("max_keepalive 70000",), False, False),
    (("sys_interval -1",), False, False),
    (("allow_anonymous yes",), False, False),
    (("allow_anonymous # true",), False, False),
    (("log_type loud",), False, False),
    (("connection up # x", "address 127.0.0.1", "topic a"), True, True),
    (("connection up here", "address 127.0.0.1", "topic a"), True, True),
    ((*BRIDGE_OF, "topic a OUT"), True, True),
    ((*BRIDGE_OF, "topic a Both 1 # x"), True, True),
    ((*BRIDGE_OF, "topic a out # x"), True, True),
    ((*BRIDGE_OF, 'topic a out 1 "" r/ # x'), True, True),
    ((*BRIDGE_OF, "topic a up"), False, False),
    ((*BRIDGE_OF, "topic a out 3"), False, False),
    ((*BRIDGE_OF, 'topic "a b/#" both 1'), True, False),  # from 2.1 on
    ((*BRIDGE_OF, "restart_timeout 10 60 20"), True, True),
    ((*BRIDGE_OF, 'topic a out 0 "" "r/"'), False, True),  # the quotes are part of the prefix
    ((*BRIDGE_OF, "topic a out 1x"), False, True),  # as 1
    ((*BRIDGE_OF, "topic a out x"), False, True),  # as 0
    ((*BRIDGE_OF, "topic a # x"), True, False),
    ((*BRIDGE_OF, "restart_timeout 5s"), False, True),  # as 5
    ((*BRIDGE_OF, "restart_timeout 5 # x"), True, False),  # as 5 0
    ((*BRIDGE_OF, "restart_timeout 5 9000"), False, True),  # as 5 7200 in 2.1
    ((*BRIDGE_OF, "bridge_protocol_version mqttv50 # x"), True, False),
    ((*BRIDGE_OF, "remote_clientid a", "remote_clientid b"), True, False),
    (("connection up", "address 127.0.0.1:1883x"), False, True),  # as 1883
    (("max_qos 1# a",), False, True),  # as 1; refused in 2.1
    (("max_queued_bytes 1G",), False, True),  # as 1; refused in 2.1
    (("max_queued_bytes 2000000000",), False, True),
    (("autosave_interval 200000000",), False, True),
    (("persistent_client_expiration 10y",), False, True),
    (("persistent_client_expiration 3600",), True, False),
    (("persistent_client_expiration 0d",), True, False),
    (("max_packet_size 0",), True, False),
    (("log_dest file /dev/null", "log_dest file /dev/stdout"), True, False),
    ((*BRIDGE_OF, "restart_timeout 10 7200"), True, True),
    ((*BRIDGE_OF, "restart_timeout 60 10"), False, False),
    ((*BRIDGE_OF, "cleansession true # x"), True, True),
    ((*BRIDGE_OF, "start_type once # x"), True, True),
    ((*BRIDGE_OF, "start_type manual"), False, False),
    (("connection up", "address 127.0.0.1 ::1:1884 # two"), True, True),
    ((*BRIDGE_OF, "address 127.0.0.1"), False, False),
)


@pytest.mark.parametrize(("lines", "ours", "theirs"), HABITS, ids=lambda each: str(each)[:60])
def test_a_line_is_read_as_mosquitto_reads_it(
    lines: tuple[str, ...], ours: bool, theirs: bool, tmp_path: Path
) -> None:
    """Behind the lines stands a wrong one: that is the first error if they are right."""
    found, _ = checked("".join(f"{line}\n" for line in lines), tmp_path)
    assert (len(lines) not in {at for at, _, _ in found}) == ours, found
    file = tmp_path / "theirs.conf"
    file.write_text("".join(f"{line}\n" for line in (*lines, "no_such_key 1")))
    command = [*mosquitto.broker(), "-c", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    at = int(done.stderr.rpartition(":")[2].rstrip(".\n"))
    assert (at == len(lines) + 1) == theirs, done.stderr

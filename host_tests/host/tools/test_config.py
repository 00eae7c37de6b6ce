"""`slotmq config` and `slotmq budget -c`: a configuration is checked without a start."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner, Result

from slotmq.config import mosquitto_conf, other_keys, tls_listeners
from slotmq.config.mosquitto_conf import FIELDS
from slotmq.config.policies import rows
from slotmq.config.reload import reload
from slotmq.config.settings import ConfError
from slotmq_tools import boards
from slotmq_tools.cli import main
from slotmq_tools.config import keys
from slotmq_tools.config.check import check, preset

HOST = preset("HOST")


class Theirs(NamedTuple):
    """A key of mosquitto."""

    part: str
    default: str = ""  # "": none


def _read_keys() -> dict[str, Theirs]:
    lines = (Path(__file__).parent / "mosquitto_keys.tsv").read_text().splitlines()
    rows = (line.split("\t") for line in lines if line[0] != "#")
    return {name: Theirs(*rest) for name, *rest in rows}


MOSQUITTO = _read_keys()


def _of(*parts: str) -> list[str]:
    return [name for name, key in MOSQUITTO.items() if key.part in parts]


def slotmq(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def conf(folder: Path, *lines: str) -> Path:
    path = folder / "slotmq.conf"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


class TestCheck:
    def test_a_good_file(self, tmp_path: Path) -> None:
        result = slotmq("config", "check", conf(tmp_path, "listener 1883", "max_qos 1"))
        assert result.exit_code == 0
        assert result.stderr == ""
        assert "good for this computer" in result.stdout

    def test_all_errors_and_warnings_with_their_lines(self, tmp_path: Path) -> None:
        file = conf(tmp_path, "max_qos 3", "user nobody", "certfile a.crt", "persistance true")
        result = slotmq("config", "check", file)
        assert result.exit_code == 1
        found = [line.split(": ")[:3] for line in result.stderr.splitlines()]
        assert found[0][:2] == ["warning", f"{file}:2"]
        assert [each[:2] for each in found[1:]] == [
            [f"{file}:1", "max_qos"],
            [f"{file}:3", "certfile"],
            [f"{file}:4", "persistance"],
        ]
        assert result.stderr.endswith("did you mean persistence?\n")

    def test_a_board_has_limits_of_its_own(self, tmp_path: Path) -> None:
        file = conf(tmp_path, "max_queued_messages 100")
        assert slotmq("config", "check", file).exit_code == 0
        result = slotmq("config", "check", "--board", "RPI_PICO_W", file)
        assert result.exit_code == 1
        assert f"{file}:1: max_queued_messages: expected at most 80" in result.stderr

    def test_included_files_are_checked(self, tmp_path: Path) -> None:
        (tmp_path / "conf.d").mkdir()
        (tmp_path / "conf.d/one.conf").write_text("\nmax_qos 3\n")
        result = slotmq("config", "check", conf(tmp_path, f"include_dir {tmp_path}/conf.d"))
        assert result.stderr.startswith(f"{tmp_path}/conf.d/one.conf:2: max_qos: ")

    @pytest.mark.parametrize(
        "line",
        ["record a/#/b", "record a\nrecord_segment_size 1025", "record a\nrecord_budget 2048"],
    )
    def test_what_only_the_start_would_notice(self, line: str, tmp_path: Path) -> None:
        result = slotmq("config", "check", conf(tmp_path, line))
        assert result.exit_code == 1
        assert "record" in result.stderr

    def test_what_it_names_and_this_computer_does_not_have(self, tmp_path: Path) -> None:
        lines = [f"password_file {tmp_path}/users", f"acl_file {tmp_path}/rules"]
        lines += [f"log_dest file {tmp_path}/log/broker"]
        lines += ["persistence true", f"persistence_location {tmp_path}/data"]
        file = conf(tmp_path, *lines, f"pid_file {tmp_path}/run/pid")
        result = slotmq("config", "check", file)
        assert result.exit_code == 0
        found = [line.split(": ")[1] for line in result.stderr.splitlines()]
        assert found == [f"{tmp_path}/{name}" for name in ("users", "rules", "log", "run", "data")]
        on_board = slotmq("config", "check", file, "--board", "RPI_PICO_W")
        assert on_board.exit_code == 0 and "not on this computer" not in on_board.stderr
        assert on_board.stderr.startswith("warning: the tables take ")  # it is tight

    def test_a_wrong_line_of_the_users(self, tmp_path: Path) -> None:
        users = tmp_path / "users"
        users.write_text("alice:secret\n")
        result = slotmq("config", "check", conf(tmp_path, f"password_file {users}"))
        assert result.exit_code == 1
        assert f"{users}:1: " in result.stderr

    @pytest.mark.parametrize("board", ["HOST", "RPI_PICO_W"])
    def test_all_wrong_lines_of_the_files_that_it_names(self, board: str, tmp_path: Path) -> None:
        users, rules = tmp_path / "users", tmp_path / "rules"
        users.write_text("alice:secret\n")
        rules.write_text("user alice\ntopic never a\ntopic read a\ntopic read a/#/b\n")
        file = conf(tmp_path, f"password_file {users}", f"acl_file {rules}")
        result = slotmq("config", "check", "--board", board, file)
        assert result.exit_code == 1
        found = [line.split(": ")[0] for line in result.stderr.splitlines()]
        assert found == [f"{users}:1", f"{rules}:2", f"{rules}:4"]

    def test_the_acl_file_of_each_listener(self, tmp_path: Path) -> None:
        for name in ("first", "second"):
            (tmp_path / name).write_text(f"topic read a\ntopic never {name}\n")
        lines = ["per_listener_settings true"]
        for port, name in enumerate(("first", "second", "third"), 1883):
            lines += [f"listener {port}", f"acl_file {tmp_path}/{name}"]
        result = slotmq("config", "check", conf(tmp_path, *lines))
        assert result.exit_code == 1
        assert re.findall(r"/(\w+):2: expected", result.stderr) == ["first", "second"]
        assert f"warning: {tmp_path}/third: not on this computer" in result.stderr

    def test_tls_of_a_bridge(self, tmp_path: Path) -> None:
        bridge = ("connection up", "address localhost:8883", "topic #")
        file = conf(tmp_path, *bridge, f"bridge_cafile {tmp_path}/ca.crt")
        result = slotmq("config", "check", file)
        assert result.stderr.startswith(f"warning: {tmp_path}/ca.crt: not on this computer")
        assert result.exit_code == 0
        (tmp_path / "ca.crt").write_text("no certificate")
        for line in (f"bridge_cafile {tmp_path}/ca.crt", "bridge_insecure true"):
            result = slotmq("config", "check", conf(tmp_path, *bridge, line))
            assert "connection: expected bridge_cafile" in result.stderr
            assert result.exit_code == 1

    @pytest.mark.parametrize("key", ["password_file", "acl_file"])
    def test_a_folder_in_place_of_a_file(self, key: str, tmp_path: Path) -> None:
        result = slotmq("config", "check", conf(tmp_path, f"{key} {tmp_path}"))
        assert result.exit_code == 1
        assert result.stderr.startswith(f"{tmp_path}: expected a file that can be read")

    def test_rules_of_a_computer_may_be_too_many_for_a_board(self, tmp_path: Path) -> None:
        rules = tmp_path / "rules"
        rules.write_text("topic read a\n" * 25)
        file = conf(tmp_path, f"acl_file {rules}")
        assert slotmq("config", "check", file).stderr == ""
        result = slotmq("config", "check", "--board", "RPI_PICO_W", file)
        assert result.exit_code == 1
        assert result.stderr == f"{rules}: it takes limit acl_rules 25, not 24\n"

    @pytest.mark.parametrize("board", [name for name in boards.names() if name != "HOST"])
    def test_tables_that_a_board_has_no_heap_for(self, board: str, tmp_path: Path) -> None:
        small = slotmq("config", "check", conf(tmp_path, "listener 1883"), "--board", board)
        assert (small.exit_code, small.stderr) == (0, ""), "its own limits"
        assert small.stdout.endswith(f": good for {board}\n")
        lines = "limit messages 60000", "limit message_bytes 15000000", "limit message_block 256"
        large = slotmq("config", "check", conf(tmp_path, *lines), "--board", board)
        assert large.exit_code == 1 and "good" not in large.stdout
        assert re.search(r"the tables take [\d,]+ bytes, and \w+ has [\d,]+ left", large.stderr)
        assert "lower limit message_bytes (" in large.stderr
        one = conf(tmp_path, "limit messages 60000")
        if (found := slotmq("config", "check", one, "--board", board)).exit_code:
            assert re.findall(r"(\w+) \(\d+ bytes less", found.stderr) == ["messages"]

    def test_more_connections_than_a_board_has_sockets_for(self, tmp_path: Path) -> None:
        lines = "connections 10", "sessions 10", "route_entries 48"
        file = conf(tmp_path, *(f"limit {line}" for line in lines))
        done = slotmq("config", "check", file, "--board", "RPI_PICO_W")
        assert done.stderr == (
            "warning: limit connections 10: with its stock firmware RPI_PICO_W has sockets for 4:"
            " more clients get no answer\n"
        )
        assert done.stdout == f"{file}: no errors, 1 warning for RPI_PICO_W\n"

    def test_what_the_start_lacks_is_not_good(self, tmp_path: Path) -> None:
        file = conf(tmp_path, f"password_file {tmp_path}/users")
        done = slotmq("config", "check", file)
        assert "the start needs it" in done.stderr
        assert done.stdout == f"{file}: no errors, 1 warning for this computer\n"

    def test_a_missing_file(self, tmp_path: Path) -> None:
        result = slotmq("config", "check", tmp_path / "none")
        assert result.exit_code == 1
        assert str(tmp_path / "none") in result.stderr


class TestKeys:
    def test_the_table_has_every_served_key_in_its_order(self) -> None:
        assert [key.name for key in keys.served()] == [row[0] for row in rows(FIELDS)]

    def test_the_command_prints_every_key(self) -> None:
        output = slotmq("config", "--keys").output
        for name in [*(key.name for key in keys.served()), *other_keys.names()]:
            assert re.search(rf"^{re.escape(name)}  ", output, re.MULTILINE), name
        assert max(map(len, output.splitlines())) <= 100

    def test_mosquitto_has_each_key_and_no_other(self) -> None:
        """The tables have every key of mosquitto, and name no other key that is not served."""
        served = {key.name for key in keys.served()}
        others = {key.name for key in keys.others()}
        assert set(MOSQUITTO) - served - others == set()
        assert others - set(MOSQUITTO) == {"scram_file"}

    def test_keys_of_one_row_have_one_text(self) -> None:
        bridges = {key.text for key in keys.others() if key.status == "bridge"}
        assert bridges == {"of the `connection` above it, see [bridges](bridge.md)"}

    def test_our_default_stands_beside_mosquittos(self) -> None:
        for key in keys.served():
            theirs = MOSQUITTO[key.name].default if key.name in MOSQUITTO else "not there"
            if key.name == "retry_interval":
                theirs = "not there"  # mosquitto knows it and says that it is gone
            assert key.mosquittos == (theirs or key.ours), key.name
        (nodelay,) = (key for key in keys.served() if key.name == "set_tcp_nodelay")
        assert (nodelay.ours, nodelay.mosquittos) == ("true", "false")

    def test_one_of_both_must_be_asked_for(self) -> None:
        assert slotmq("config").exit_code == 2


OF_BRIDGE = [key.name for key in keys.others() if key.status == "bridge"]


class TestNeverPlain:
    """A file that meant TLS, WebSockets or HTTP is never served as plain MQTT."""

    @pytest.mark.parametrize("board", ["HOST", "RPI_PICO_W"])
    @pytest.mark.parametrize("key", _of("tls", "bridge-tls"))
    def test_tls(self, key: str, board: str, tmp_path: Path) -> None:
        """One key of TLS is never enough; and a board has only some of them."""
        of_board = board == "HOST" or key in tls_listeners._OF_ALL.split()
        is_kept = key in {row[0] for row in rows(FIELDS)} and of_board
        for before in (
            (),
            ("port 8883",),
            ("listener 1883", "listener 8883 127.0.0.1"),
            ("listener 8883", "connection cloud", "address example.org:8883"),
        ):
            for value in ("true", "/etc/server.pem", ""):
                file = conf(tmp_path, *before, f"{key} {value}", "max_qos 1")
                errors, _ = check(file, board)
                at = f"{file}:{len(before) + 1}: {key}: {'' if is_kept else 'not served: '}"
                if key in OF_BRIDGE and board == "HOST":
                    at = f"{file}:"
                assert [line for line in errors if line.startswith(at)], (before, value)

    def test_the_reason_is_said_once_and_names_the_listener(self, tmp_path: Path) -> None:
        lines = "listener 8883", "capath /a", "crlfile /b", "dhparamfile /c"
        found = check(conf(tmp_path, *lines), "RPI_PICO_W")[0]
        reasons = [line.partition(": not served: ")[2] for line in found if "not served" in line]
        assert reasons == ["with TLS this needs CPython", "as line 2", "as line 2"]
        assert any("which never serves plain MQTT instead" in line for line in found)

    def test_a_board_says_how_many_connections(self, tmp_path: Path) -> None:
        lines = "listener 8883", "certfile /b", "keyfile /c", "allow_anonymous true"
        file = conf(tmp_path, *lines)
        (error,) = check(file, "RPI_PICO_W")[0]
        assert error.startswith(f"{file}:2: certfile: expected limit tls_connections")
        assert check(conf(tmp_path, *lines, "limit tls_connections 1"), "RPI_PICO_W")[0] == []

    def test_a_board_without_heap_for_them_is_a_warning(self, tmp_path: Path) -> None:
        lines = "listener 8883", "certfile /b", "keyfile /c", "allow_anonymous true"
        file = conf(tmp_path, *lines, "limit tls_connections 1")
        ((text,), none) = (check(file, board)[1] for board in ("RPI_PICO_W", "RPI_PICO2_W"))
        assert text.startswith("limit tls_connections 1: ") and "RPI_PICO_W has heap for 0" in text
        assert none == []
        small = "mqtt_versions 3", "limit message_bytes 4096", "limit tls_connections 1"
        assert check(conf(tmp_path, *lines, *small), "RPI_PICO_W") == ([], [])

    @pytest.mark.parametrize(
        "line",
        [
            "enable_proxy_protocol 2",
            "proxy_protocol_v2_require_tls true",
        ],
    )
    def test_protocols(self, line: str, tmp_path: Path) -> None:
        file = conf(tmp_path, "listener 1883", "listener 9001", line)
        result = slotmq("config", "check", file)
        assert result.exit_code == 1
        assert result.stderr.startswith(f"{file}:3: {line.split()[0]}: not served: ")

    def test_plain_mqtt_may_be_said(self, tmp_path: Path) -> None:
        off = "require_certificate", "use_identity_as_username", "use_subject_as_username"
        lines = "listener 1883", "protocol mqtt", *(f"{key} false" for key in off)
        assert slotmq("config", "check", conf(tmp_path, *lines)).exit_code == 0

    def test_a_reload_that_asks_for_tls_changes_nothing(self, tmp_path: Path) -> None:
        settings, limits, *_ = mosquitto_conf.load(conf(tmp_path, "listener 1883"), HOST)
        file = conf(tmp_path, "listener 1883", "certfile a.crt", "max_qos 0")
        with pytest.raises(ConfError, match="certfile: expected a file that can be read"):
            reload(file, limits, settings)
        assert settings.max_qos == 2

    def test_each_part_has_keys(self) -> None:
        assert len(_of("tls")) == 18
        assert len(_of("bridge-tls")) == 13


class TestBudget:
    def sizes(self, *arguments: object) -> dict[str, int]:
        output = slotmq("budget", *arguments).output.splitlines()[1:]
        return {line[:16].strip(): int(line[16:24]) for line in output}

    def test_behind_the_sum_is_what_other_keys_add(self) -> None:
        sizes = self.sizes("--board", "RPI_PICO_W")
        more = [
            "journal",
            "users",
            "access lists",
            "session owners",
            "bridges",
            "tls_connections",
            "tls bears",
        ]
        assert list(sizes)[-8:] == ["tables", *more]
        assert sum(list(sizes.values())[:-8]) == sizes["tables"]

    @pytest.mark.parametrize(
        ("board", "lines", "most"),
        [
            ("RPI_PICO_W", (), 0),
            ("RPI_PICO_W", ("mqtt_versions 3", "limit message_bytes 4096"), 1),
            ("W5500_EVB_PICO", ("mqtt_versions 3", "limit message_bytes 4096"), 2),
            ("RPI_PICO2_W", (), 3),
            ("RPI_PICO2_W", ("limit message_bytes 65536",), 4),
            ("ESP32_GENERIC_S3", (), 7),
            ("ESP32_GENERIC", ("mqtt_versions 3", "limit message_bytes 2048"), 0),
        ],
    )
    def test_how_many_connections_over_tls_a_board_bears(
        self, board: str, lines: tuple[str, ...], most: int, tmp_path: Path
    ) -> None:
        for more in ((), ("limit tls_connections 1",)):
            sizes = self.sizes("--board", board, "-c", conf(tmp_path, *lines, *more))
            assert sizes["tls bears"] == most

    def test_with_the_limits_of_a_configuration(self, tmp_path: Path) -> None:
        file = conf(tmp_path, "limit queued 20", "limit deliveries 180")
        before = self.sizes("--board", "RPI_PICO_W")
        after = self.sizes("--board", "RPI_PICO_W", "-c", file)
        assert after["deliveries"] == before["deliveries"] + 100 * 10

    def test_with_its_journal_and_users_and_without_version_5(self, tmp_path: Path) -> None:
        lines = "persistence true", "mqtt_versions 3", "password_file users"
        sizes = self.sizes("-c", conf(tmp_path, *lines))
        assert list(sizes)[-5:] == ["journal", "session owners", "users", "tables", "access lists"]
        assert "version 5" not in sizes
        assert sum(list(sizes.values())[:-2]) == sizes["tables"]

    def test_with_its_bridges(self, tmp_path: Path) -> None:
        lines = "connection up", "address 192.0.2.1", "topic #", "topic b in"
        sizes = self.sizes("--board", "RPI_PICO_W", "-c", conf(tmp_path, *lines))
        assert sizes["bridges"] == 900 + 2 * 250
        assert sum(list(sizes.values())[: list(sizes).index("tables")]) == sizes["tables"]

    def test_a_bad_file(self, tmp_path: Path) -> None:
        result = slotmq("budget", "-c", conf(tmp_path, "limit queued x"))
        assert result.exit_code == 1
        assert ":1: limit: expected " in result.output

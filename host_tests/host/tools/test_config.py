"""`slotmq config` and `slotmq budget -c`: a configuration is checked without a start."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from slotmq.config import other_keys
from slotmq.config.mosquitto_conf import FIELDS
from slotmq.config.policies import rows
from slotmq_tools.cli import main
from slotmq_tools.config import keys
from slotmq_tools.dev.keys import PAGE, written


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
        assert f"{file}:1: max_queued_messages: expected at most 24" in result.stderr

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
        lines = [f"password_file {tmp_path}/users", f"log_dest file {tmp_path}/log/broker"]
        lines += ["persistence true", f"persistence_location {tmp_path}/data"]
        file = conf(tmp_path, *lines, f"pid_file {tmp_path}/run/pid")
        result = slotmq("config", "check", file)
        assert result.exit_code == 0
        found = [line.split(": ")[1] for line in result.stderr.splitlines()]
        assert found == [f"{tmp_path}/{name}" for name in ("users", "log", "run", "data")]
        assert slotmq("config", "check", file, "--board", "RPI_PICO_W").stderr == ""

    def test_a_wrong_line_of_the_users(self, tmp_path: Path) -> None:
        users = tmp_path / "users"
        users.write_text("alice:secret\n")
        result = slotmq("config", "check", conf(tmp_path, f"password_file {users}"))
        assert result.exit_code == 1
        assert f"{users}:1: " in result.stderr

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
            assert re.search(rf"^ +{re.escape(name)} ", output, re.MULTILINE), name

    def test_the_documentation_has_the_same_tables(self) -> None:
        """`python -m slotmq_tools.dev.keys` writes them."""
        text = PAGE.read_text()
        assert written(text) == text

    @pytest.mark.parametrize(
        ("name", "ours", "mosquittos"),
        [
            ("set_tcp_nodelay", "true", "false"),
            ("allow_duplicate_messages", "false", "true"),
            ("persistence_file", "slotmq.db", "mosquitto.db"),
            ("max_packet_size", "table", "2000000"),
            ("sys_interval", "10", "10"),
            ("record_segment_size", "16384", "not there"),
        ],
    )
    def test_our_default_stands_beside_mosquittos(
        self, name: str, ours: str, mosquittos: str
    ) -> None:
        (key,) = (key for key in keys.served() if key.name == name)
        assert (key.ours, key.mosquittos) == (ours, mosquittos)

    def test_one_of_both_must_be_asked_for(self) -> None:
        assert slotmq("config").exit_code == 2


class TestBudget:
    def sizes(self, *arguments: object) -> dict[str, int]:
        output = slotmq("budget", *arguments).output.splitlines()[1:]
        return {line[:16].strip(): int(line[16:24]) for line in output}

    def test_behind_the_sum_are_the_journal_and_the_users(self) -> None:
        sizes = self.sizes("--board", "RPI_PICO_W")
        assert list(sizes)[-3:] == ["tables", "journal", "users"]
        assert sum(list(sizes.values())[:-3]) == sizes["tables"]

    def test_with_the_limits_of_a_configuration(self, tmp_path: Path) -> None:
        file = conf(tmp_path, "limit queued 20", "limit deliveries 180")
        before = self.sizes("--board", "RPI_PICO_W")
        after = self.sizes("--board", "RPI_PICO_W", "-c", file)
        assert after["deliveries"] == before["deliveries"] + 100 * 10

    def test_with_its_journal_and_users_and_without_version_5(self, tmp_path: Path) -> None:
        lines = "persistence true", "mqtt_versions 3", "password_file users"
        sizes = self.sizes("-c", conf(tmp_path, *lines))
        assert list(sizes)[-3:] == ["journal", "users", "tables"]
        assert "version 5" not in sizes
        assert sum(list(sizes.values())[:-1]) == sizes["tables"]

    def test_a_bad_file(self, tmp_path: Path) -> None:
        result = slotmq("budget", "-c", conf(tmp_path, "limit queued x"))
        assert result.exit_code == 1
        assert ":1: limit: expected " in result.output

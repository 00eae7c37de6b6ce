"""`slotmq deploy` and related commands over the UART, on a board with nothing but MicroPython."""

import re

from .conftest import NAME, Deployed

BLANK = True
SECRET = "a password that nobody sees"


def test_a_wrong_board_is_refused_before_anything_is_written(board: Deployed) -> None:
    words = ["deploy", "--board", "ESP32_GENERIC", "--ppp", "--port", board.board.device]
    status, said = board.cli(*words)
    assert status == 1
    assert "with RP2040, not ESP32_GENERIC" in said
    assert "--board RPI_PICO_W" in said
    status, said = board.cli(*words, "--force-board")
    assert status == 1
    assert "armv6m" in said and "xtensawin" in said


def test_a_port_that_cannot_be_opened(board: Deployed) -> None:
    status, said = board.cli("deploy", "--board", NAME, "--ppp", "--port", "socket://127.0.0.1:9")
    assert status == 1
    assert "socket://127.0.0.1:9" in said
    assert "Traceback" not in said


def test_tables_that_do_not_fit_are_refused_with_the_limit(board: Deployed) -> None:
    conf = board.folder / "large.conf"
    conf.write_text("listener 1883\nlimit message_bytes 150000\n")
    words = ["--board", NAME, "--ppp", "--port", board.board.device, "-c", conf]
    status, said = board.cli("deploy", *words)
    assert status == 1
    assert re.search(r"lower limit message_bytes \(\d+ bytes less", said), said


def test_it_deploys_and_reports(board: Deployed) -> None:
    said = board.deploy()
    assert "(emulated) with RP2040" in said and "MicroPython 1.25.0" in said
    assert re.search(r"\n(\d+) of \1 files", said) and "0 removed" in said, said
    assert "slotmq 0.1.0" in said and "(32-bit), board RPI_PICO_W" in said
    assert "ppp: up, 10.0.2.15" in said
    assert re.search(r"127\.0\.0\.1:\d+: .* \d+ ms", said), said


def test_a_second_deploy_writes_only_changed_files(board: Deployed) -> None:
    assert re.search(r"\n0 of \d+ files", board.deploy())
    said = board.deploy("listener 1883\nallow_anonymous true\nmax_keepalive 600\n")
    assert re.search(r"\n1 of \d+ files", said), said


def test_the_boards_own_configuration_stays(board: Deployed) -> None:
    said = board.deploy(None)
    assert "slotmq.conf" in said
    assert re.search(r"\n0 of \d+ files", said), said


def test_status_shows_sys_topics(board: Deployed) -> None:
    status, said = board.cli("status", "{}:{}".format(*board.address))
    assert status == 0
    assert "$SYS/broker/version" in said


def test_a_network_without_a_driver_is_refused_before_anything_is_changed(board: Deployed) -> None:
    """The emulated board has no Wi-Fi."""
    words = ["deploy", "--board", NAME, "--wifi-ssid", "home", "--port", board.board.device]
    status, said = board.cli(*words, secret=SECRET)
    assert status == 1
    assert "network.WLAN" in said
    assert SECRET not in said
    assert re.search(r"\n0 of \d+ files", board.deploy(None))


def test_a_broker_that_cannot_start_is_reported_with_its_reason(board: Deployed) -> None:
    conf = board.folder / "missing.conf"
    conf.write_text("listener 1883\npersistence true\npersistence_location nowhere\n")
    words = ["--board", NAME, "--ppp", "--port", board.board.device, "-c", conf]
    status, said = board.cli("deploy", *words)
    assert status == 1
    assert "slotmq.conf:3: persistence_location: " in said, said


def test_a_backup_has_the_configuration_and_only_its_owner_may_read_it(board: Deployed) -> None:
    folder = board.folder / "saved"
    status, said = board.cli("backup", folder, "--port", board.board.device)
    assert status == 0, said
    assert "/network.json" in said
    assert (folder / "network.json").stat().st_mode & 0o77 == 0


def test_logs_show_what_the_board_prints(board: Deployed) -> None:
    board.deploy()  # a configuration that starts
    words = ["--port", board.board.device, "--seconds", "2"]
    status, said = board.cli("logs", *words)
    assert status == 0, said
    assert board.serves()  # still

"""What a deploy changes and leaves: when it is cut off, where the main.py is somebody else's,
where flash is short, and on a board that is another one."""

import hashlib
from contextlib import suppress

import pytest

from host_tests.host.deploy.fake_repl import BOARD, HEADLINE, FakeRepl, deployed, order, probe
from slotmq_tools import boards
from slotmq_tools.deploy import board_files, copying, steps
from slotmq_tools.errors import ToolError

SAID = [HEADLINE, "wifi home: up, 192.168.1.7"]
THEIRS = b"import machine  # my own\n"
CODE = {f"/lib/slotmq/{n}.mpy": b"new %d" % n * 900 for n in range(6)} | {"/main.py": b"new"}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of few files."""
    monkeypatch.setattr(board_files, "code", lambda *_: dict(CODE))
    ours = [hashlib.sha256(text).hexdigest() for text in (b"new", b"old", b"old" * 4000)]
    monkeypatch.setattr(board_files, "mains", lambda: tuple(ours))


def old_board() -> FakeRepl:
    """With an older version, of which one file is gone today."""
    board = FakeRepl(SAID)
    deployed(board)
    for path in (*list(CODE)[:4], "/lib/slotmq/gone.mpy"):
        board.files[path] = b"old"
    board.files["/lib/mine.py"] = b"not slotmq's"
    return board


@pytest.mark.usefixtures("small", "tried")
def test_an_upgrade_that_is_cut_off_leaves_the_old_or_the_new_or_a_mark() -> None:
    board = old_board()
    old = dict(board.files)
    deployed(board, network=board_files.Network("station", "home", None, "name"))
    new = dict(board.files)
    outcomes = []
    for steps_left in range(20):
        board = FakeRepl(SAID)
        board.files = dict(old)
        board.steps_left = steps_left
        with suppress(ToolError):
            deployed(board, network=board_files.Network("station", "home", None, "name"))
        now = {path: text for path, text in board.files.items() if not path.endswith(".new")}
        assert b'"password": "a secret"' in now["/network.json"]
        outcomes.append("mark" if copying.MARK in now else "old" if now == old else "new")
        assert outcomes[-1] != "new" or now == new, steps_left
        board.steps_left = 10**6  # and the next one brings it to its end
        deployed(board, network=board_files.Network("station", "home", None, "name"))
        assert board.files == new
    assert outcomes[0] == "old" and outcomes[1] == "mark" and outcomes[-1] == "new"
    assert outcomes == sorted(outcomes, key=["old", "mark", "new"].index)


@pytest.mark.usefixtures("small", "tried")
def test_one_file_alone_needs_no_mark() -> None:
    board = FakeRepl(SAID)
    deployed(board)
    board.written.clear()
    deployed(board, network=board_files.Network("station", "home", "another secret"))
    assert board.written == ["/network.json"]


@pytest.mark.usefixtures("small", "tried")
class TestAnotherMain:
    def board(self) -> FakeRepl:
        board = FakeRepl(SAID)
        board.files["/main.py"] = THEIRS
        return board

    def test_it_is_not_overwritten_without_being_asked(self) -> None:
        board = self.board()
        with pytest.raises(ToolError, match=r"not slotmq's: `--main replace`.*`--main keep`"):
            deployed(board)
        assert board.files == {"/main.py": THEIRS}
        assert board.resets == 1

    def test_replaced_it_lies_beside(self) -> None:
        board = self.board()
        deployed(board, main=copying.REPLACE)
        assert board.files["/main.own.py"] == THEIRS
        assert board.files["/main.py"] == CODE["/main.py"]

    def test_one_that_lies_there_already_is_not_overwritten(self) -> None:
        board = self.board()
        board.files["/main.own.py"] = b"an earlier one"
        with pytest.raises(ToolError, match=r"there already.*mpremote rm :/main.own.py"):
            deployed(board, main=copying.REPLACE)
        assert board.written == []

    def test_kept_it_is_what_starts(self, tried: list[object]) -> None:
        board = self.board()
        said = deployed(board, main=copying.KEEP)
        assert board.files["/main.py"] == THEIRS
        assert board.files["/slotmq_main.py"] == CODE["/main.py"]
        assert "your main.py: `slotmq logs`" in said[-1]
        assert board.resets == 1 and tried == []

    def test_ours_beside_goes_when_ours_is_what_starts(self) -> None:
        board = self.board()
        deployed(board, main=copying.KEEP)
        deployed(board, main=copying.REPLACE)
        assert "/slotmq_main.py" not in board.files


def test_mains_of_earlier_versions_are_ours() -> None:
    board = FakeRepl()
    board.files["/main.py"] = board_files.code(BOARD, boards.load(BOARD).mpy_arch)["/main.py"]
    assert board.hashes()["/main.py"] in board_files.mains()
    assert len(board_files.mains()) > 1


@pytest.mark.usefixtures("small", "tried")
class TestRoom:
    def test_what_is_old_makes_room(self) -> None:
        """Each file is written beside the old one, which goes then."""
        board = FakeRepl(SAID)
        deployed(board)
        for path in CODE:
            board.files[path] = b"old" * 4000
        board.probe = probe(flash=16384)
        deployed(board)
        assert board.files["/main.py"] == b"new"

    def test_what_is_old_and_too_small_does_not(self) -> None:
        board = FakeRepl(SAID)
        deployed(board)
        for path in CODE:
            board.files[path] = b"old"
        board.files["/lib/slotmq/gone.mpy"] = b"old"
        board.probe = probe(flash=16384)
        board.written.clear()
        with pytest.raises(ToolError, match=r"are to be written and 16,384 are free: .*--erase"):
            deployed(board)
        assert board.written == []


class TestTheBoard:
    MACHINES = (
        ("RPI_PICO_W", "Raspberry Pi Pico W with RP2040"),
        ("RPI_PICO2_W", "Raspberry Pi Pico 2 W with RP2350"),
        ("W5500_EVB_PICO", "W5500-EVB-Pico with RP2040"),
        ("ESP32_GENERIC", "Generic ESP32 module with SPIRAM with ESP32"),
        ("ESP32_GENERIC_C3", "ESP32C3 module with ESP32C3"),
        ("ESP32_GENERIC_S3", "Generic ESP32S3 module with Octal-SPIRAM with ESP32-S3"),
    )

    @pytest.mark.parametrize(("name", "machine"), MACHINES)
    def test_each_is_known_by_what_it_says_and_is_no_other(self, name: str, machine: str) -> None:
        assert boards.matching(machine) == [name]

    def test_every_board_that_is_deployed_to_has_a_name(self) -> None:
        found = [name for name in boards.names() if boards.load(name).machines]
        assert found == sorted(name for name, _ in self.MACHINES)

    def test_another_one_of_the_same_processor_is_refused(self) -> None:
        board = FakeRepl(SAID)
        wrong = order(
            board=boards.load("W5500_EVB_PICO"),
            network=board_files.Network("ethernet"),
            force=False,
        )
        with pytest.raises(
            ToolError, match=r"Raspberry Pi Pico W with RP2040, not W5500_EVB_PICO"
        ):
            steps.deploy(wrong, board, print)  # type: ignore[arg-type]
        assert board.written == []

    def test_one_that_nobody_knows_is_refused_with_the_way_past(self) -> None:
        board = FakeRepl(SAID)
        board.probe = probe(machine="Somebody's board with RP2040")
        with pytest.raises(ToolError, match="name another --board, or --force-board"):
            deployed(board)

    def test_it_may_be_forced(self, small: None, tried: list[object]) -> None:
        board = FakeRepl(SAID)
        board.probe = probe(machine="Somebody's board with RP2040")
        assert deployed(board, force=True)[-1] == "192.168.1.7:1884: it answered"

    def test_another_processor_is_refused_all_the_same(self) -> None:
        board = FakeRepl(SAID)
        board.probe = probe(machine="Somebody's board with RP2350", mpy=7942)
        with pytest.raises(ToolError, match=r"runs armv7emsp code, and RPI_PICO_W is armv6m"):
            deployed(board, force=True)


class TestWiFi:
    @pytest.mark.parametrize("password", ["short", "x" * 64, "längerer Text", "with\ttabulator"])
    @pytest.mark.parametrize("link", ["station", "access_point"])
    def test_a_password_that_no_network_has_is_refused(self, link: str, password: str) -> None:
        board = FakeRepl(SAID)
        with pytest.raises(ToolError, match="8 to 63 characters of printable ASCII") as refused:
            deployed(board, network=board_files.Network(link, "home", password))
        assert password not in str(refused.value)
        assert board.written == []

    @pytest.mark.parametrize("password", ["", "12345678", "~" * 63, "0123456789abcdef" * 4])
    def test_those_that_there_are_pass(self, password: str) -> None:
        board_files.Network("station", "home", password).check()

    @pytest.mark.parametrize("ssid", ["", "x" * 33, "ü" * 17])
    def test_a_name_that_no_network_has_is_refused(self, ssid: str) -> None:
        with pytest.raises(ToolError, match="1 to 32 bytes"):
            board_files.Network("access_point", ssid, "long enough").check()

    @pytest.mark.usefixtures("small")
    def test_an_access_point_is_not_tried_from_another_network(
        self, tried: list[tuple[str, int]]
    ) -> None:
        board = FakeRepl([HEADLINE, "access point shed: up, 192.168.4.1"])
        network = board_files.Network("access_point", "shed", "long enough")
        said = deployed(board, network=network)
        assert "Join shed, then `slotmq status 192.168.4.1:1884`" in said[-1]
        assert tried == []
        deployed(board, network=network, reach=("10.0.0.9", 1883))
        assert tried == [("10.0.0.9", 1883)]

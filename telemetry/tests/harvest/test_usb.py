"""`slotmq harvest --port`: the code that the board runs, here on 32-bit MicroPython."""

import pytest

from telemetry.tests.conftest import Lab, cli, identities, recorder


def test_all_files_come_and_nothing_is_changed(lab: Lab) -> None:
    one = recorder(messages=300, size=8192)
    lab.written(one)
    before = {path.name: path.read_bytes() for path in lab.flash.iterdir()}
    assert f": {len(one.segments)} segment" in lab.cable().output
    assert lab.identities() == identities(one)
    assert before == {path.name: path.read_bytes() for path in lab.flash.iterdir()}
    assert "nothing new" in lab.cable().output


def test_delete_leaves_the_newest_and_unsafe_segments(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = recorder(messages=300)
    lab.written(one)
    with lab.patch.context() as patch:
        patch.setattr(
            "slotmq_telemetry.harvest.manifest.Manifest.append", lambda *_: 1 / 0
        )  # the disk is full, say
        with pytest.raises(ZeroDivisionError):
            raise lab.cable("--delete", status=1).exception or AssertionError
    assert len(list(lab.flash.iterdir())) == len(one.segments)
    lab.cable("--delete")
    assert [path.name for path in lab.flash.iterdir()] == [f"{one.newest:08x}.seg"]
    assert lab.identities() == identities(one)


def test_over_the_network_and_then_by_cable_makes_no_doubles(lab: Lab) -> None:
    one = recorder(messages=300)
    lab.written(one)
    lab.cable()
    one.start()
    one.message("room/1", b"after the harvest")
    lab.written(one)
    assert ": 1 segment," in lab.cable().output
    assert lab.identities() == identities(one)
    assert len(lab.segments()) == len(one.segments)


@pytest.mark.parametrize(
    ("tail", "lacks"),
    [(b"\xff" * 40, 40), (b"\x12" * 40, 40), (b"\x12" * 40, 300)],
    ids=["erased", "torn", "records"],
)
def test_a_longer_segment_is_not_deleted_unless_by_erased_bytes(
    lab: Lab, tail: bytes, lacks: int
) -> None:
    one = recorder(messages=30)
    one.segments[0] += tail
    lab.kept(one.segments[0][:-lacks])
    one.start()
    lab.written(one)
    erased = tail[0] == 0xFF
    said = lab.cable("--delete", status=0 if erased else 1).output
    stays = "/00000000.seg: stays on the board: its bundle lacks a part of it"
    assert (stays in said) is not erased
    assert (lab.flash / "00000000.seg").exists() is not erased


def test_a_board_without_recordings(lab: Lab) -> None:
    said = lab.cable(status=1).output
    assert "no recordings" in said and "/record/*.seg" in said
    (lab.flash / "00000000.seg").write_bytes(b"something else, of at least 32 bytes")
    assert "not a segment" in lab.cable(status=1).output


def test_location_overrides_the_boards_configuration(lab: Lab) -> None:
    elsewhere = lab.flash.parent / "sd" / "my ring"
    elsewhere.mkdir(parents=True)
    one = recorder(messages=300)
    lab.written(one, "sd/my ring")
    conf = lab.flash.parent / "slotmq.conf"
    text = "# record_location /record\nrecord #\n\nrecord_location /old\n"
    conf.write_text(text)
    assert "there is no /old/*.seg" in lab.cable(status=1).output
    assert "there is no /sd/none/*.seg" in lab.cable("--location", "/sd/none", status=1).output
    conf.write_text(text + "  record_location \t sd/my ring/ \n")
    assert f": {len(one.segments)} segment" in lab.cable().output
    assert lab.identities() == identities(one)
    conf.unlink()
    assert "nothing new" in lab.cable("--location", "/sd/my ring").output


def test_options_that_do_not_go_together(lab: Lab) -> None:
    lab.card.mkdir()
    copies = ["--from", str(lab.card)]
    for options, complaint in (
        (["--port", "x", "--broker", "y"], "not both"),
        ([*copies, "--broker", "x"], "--broker or --from, not both"),
        ([*copies, "--port", "x"], "--port or --from, not both"),
        (["--broker", "x", "--broker", "y"], "one --broker at a time"),
        (["--port", "x", "--set-time"], "--set-time needs --broker"),
        ([*copies, "--set-time"], "--set-time needs --broker"),
        (["--port", "x", "--board", "aa"], "--board needs --broker"),
        ([*copies, "--delete"], "--delete needs --port"),
        (["--broker", "x", "--location", "/sd"], "--location needs --port"),
        (["--compact", "--location", "/sd"], "--location needs --port"),
    ):
        result = cli("harvest", lab.path, *options)
        assert result.exit_code == 2 and complaint in result.output
    assert not lab.path.exists()

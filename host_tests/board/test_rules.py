"""A board with an acl_file: deploy takes it there, and its rules change without a deploy."""

from host_tests.broker.wire import codec

from .conftest import Deployed

CONF = "listener 1883\nallow_anonymous true\nacl_file rules\n"


RULES = """\
topic readwrite home/#
topic deny home/safe
topic write drop
pattern readwrite dev/%c/#
"""
REFUSED = 0x80  # SUBACK return code [MQTT-3.9.3]


def may_read(board: Deployed, topic: str) -> bool:
    """Does a client get what it publishes to this topic itself?"""
    client = board.connect("reader")
    client.request(("#", 1))
    client.publish(topic, b"x", 1)
    found = [each.topic for each in client.receive_all()]
    board.hang_up()
    return topic in found


def test_deploy_takes_the_rules_to_the_board(board: Deployed) -> None:
    (board.folder / "rules").write_text(RULES)
    said = board.deploy(CONF)
    assert "it answers" in said, said
    assert may_read(board, "home/a") and not may_read(board, "shed/a")


def test_what_a_client_may_not_read_does_not_reach_it(board: Deployed) -> None:
    """A wildcard above allowed and denied topics, retained messages, a will, and a client id that
    would match the ids of others."""
    writer = board.connect("writer")
    writer.publish("drop", b"last", 1, retain=True)
    writer.publish("home/a", b"last", 1, retain=True)
    reader = board.connect("reader")
    assert reader.request(("home/safe", 1), ("drop", 1), ("#", 1))[:2] == (REFUSED, REFUSED)
    doomed = board.open()
    doomed.connect(codec.connect("doomed", will=codec.Will("home/safe", b"will", 1)))
    doomed.sock.close()
    for topic in ("home/safe", "drop", "dev/reader/a", "dev/writer/a"):
        writer.publish(topic, b"x", 1)
    reader.publish("dev/reader/b", b"x", 1)
    found = {each.topic for each in reader.receive_all()}
    assert found == {"home/a", "dev/reader/b"}
    odd = board.connect("+")
    assert odd.request(("dev/#", 1)) == (REFUSED,)
    board.hang_up()


def test_rules_change_without_a_deploy(board: Deployed) -> None:
    new = board.folder / "new"
    new.write_text("topic readwrite shed/#\n")
    board.hang_up()
    status, said = board.cli("acl", "--port", board.board.device, new)
    assert status == 0 and "the board, which starts again" in said, said
    board.wait_until(board.comes_in, "the broker with the new rules")
    assert may_read(board, "shed/a") and not may_read(board, "home/a")


def test_wrong_rules_leave_the_old_ones(board: Deployed) -> None:
    (board.folder / "new").write_text("topic readwrite home/#\ntopic all #\n")
    board.hang_up()
    status, said = board.cli("acl", "--port", board.board.device, board.folder / "new")
    assert status == 1 and "new:2: expected read, write" in said, said
    board.wait_until(board.comes_in, "the broker")
    assert may_read(board, "shed/a") and not may_read(board, "home/a")

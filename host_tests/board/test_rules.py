"""A board with an acl_file: deploy takes it there, and its rules change without a deploy."""

from host_tests.broker.wire import codec
from host_tests.broker.wire5.client import Client as Client5
from slotmq_tools import passwd
from slotmq_tools.deploy.repl import Repl

from .conftest import Deployed, reset_until

CONF = "listener 1883\nallow_anonymous true\nacl_file rules\npersistence true\n"


RULES = """\
pattern deny dev/+/off
pattern readwrite dev/%c/#
topic deny home/safe
topic readwrite home/#
topic readwrite attic/#
topic write drop
user all
topic readwrite job/#
user half
topic read job/a
"""
NEW_RULES = "topic readwrite shed/#\ntopic read attic/kept\n"
REFUSED = 0x80  # SUBACK return code [MQTT-3.9.3]
NOT_AUTHORIZED = 0x87  # reason code of SUBACK in 5.0 [MQTT-3.9.3]
USERS = b"".join(
    passwd.line(name, "secret", passwd.ITERATIONS, bytes(16)) + b"\n" for name in "ab"
)
STEP = 11  # bytes
# For each of FILES, a pair of its key and its content: what a broker says to it if it was cut
# after so many bytes; "": it starts.
CUTS = """
import os
from slotmq import Broker, Limits, Settings

limits = Limits(connections=1, sessions=4, subscriptions=4, nodes=8, message_bytes=4096)
found = []
for key, data in FILES:
    for n in range(0, len(data) + 1, STEP):
        with open("/cut", "wb") as file:
            file.write(data[:n])
        try:
            Broker(limits, Settings(**{key: "/cut"}))
            found.append((key, n, ""))
        except Exception as error:
            found.append((key, n, str(error)))
os.remove("/cut")
print(found)
"""


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


def test_a_group_s_message_goes_to_a_member_that_may_read_it(board: Deployed) -> None:
    one, half = (board.connect(name, Client5, username=name) for name in ("all", "half"))
    assert half.request(("$share/g/job/b", 1)) == (NOT_AUTHORIZED,)
    for member in (one, half):
        member.subscribe("$share/g/job/+", qos=1)
    for topic in ("job/a", "job/b") * 4:
        one.publish(topic, b"x", 1)
        one.publish(topic, b"x", 0)
    found = [[each.topic for each in member.receive_all()] for member in (one, half)]
    assert len(found[0] + found[1]) == 16
    assert found[0].count("job/b") == 8 and set(found[1]) == {"job/a"}


def test_rights_that_are_removed_while_messages_are_queued(board: Deployed) -> None:
    """Rules change without a deploy. Before that, a file that was cut lets nobody in, and the
    queue outlives it."""
    away = board.connect("away", clean=False)
    away.subscribe("attic/+", qos=1)
    away.disconnect()
    writer = board.connect("writer")
    for topic in ("attic/kept", "attic/gone"):
        writer.publish(topic, b"x", 1)
    board.hang_up()
    with Repl(board.board.device) as repl:
        repl.write("/rules", RULES[: RULES.index("/safe")].encode())
        lines = reset_until(repl, "slotmq: safe mode: the broker did not start: ")
    assert lines[-1].endswith("rules:3: expected a line end: is the file cut?")
    new = board.folder / "new"
    new.write_text(NEW_RULES)
    status, said = board.cli("acl", "--port", board.board.device, new)
    assert status == 0 and "the board, which starts again" in said, said
    board.wait_until(board.comes_in, "the broker with the new rules")
    back = board.connect("away", clean=False)
    assert back.connack.session_present
    assert [each.topic for each in back.receive_all()] == ["attic/kept"]
    assert may_read(board, "shed/a") and not may_read(board, "home/a")


def test_wrong_rules_leave_the_old_ones(board: Deployed) -> None:
    """Files that were cut are wrong on the board, too, whatever the byte."""
    files = [("acl_file", RULES.encode()), ("password_file", USERS)]
    board.hang_up()
    with Repl(board.board.device) as repl:
        found = repl.value(f"FILES, STEP = {files}, {STEP}\n{CUTS}")
    (board.folder / "new").write_text("topic readwrite home/#\ntopic all #\n")
    status, said = board.cli("acl", "--port", board.board.device, board.folder / "new")
    assert status == 1 and "new:2: expected read, write" in said, said
    board.wait_until(board.comes_in, "the broker")
    assert may_read(board, "shed/a") and not may_read(board, "home/a")
    content = dict(files)
    for key, n, error in found:
        before, after = content[key][:n], content[key][n:]
        line = before.count(b"\n") + 1
        is_whole = n == 0 or before.endswith(b"\n")
        if key == "password_file":  # a user's line shows itself that it is whole
            is_whole = is_whole or after.startswith(b"\n")
        assert error == "" if is_whole else error.startswith(f"/cut:{line}: expected "), (n, error)
    assert len(found) > len(RULES + USERS.decode()) // STEP

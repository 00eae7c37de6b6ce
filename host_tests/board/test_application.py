"""An application beside the broker, put there by `slotmq deploy --app`."""

from pathlib import Path

from .conftest import NAME, Deployed

ROOT = Path(__file__).parents[2]


def test_the_guides_own_serves_clients(board: Deployed) -> None:
    guide = (ROOT / "docs/embed.md").read_text()
    app = board.folder / "doorbell.py"
    app.write_text(guide.split("```python\n")[1].split("```")[0])
    board.deploy("listener 1883\nallow_anonymous true\n", "--app", app)
    client = board.connect("client")
    client.subscribe("hall/light", qos=0)
    client.receive("hall/light", b"off", 0, retain=True)
    client.publish("door/bell", b"", 1)
    client.receive("hall/light", b"on", 0)


def test_one_of_asyncio_as_well(board: Deployed) -> None:
    board.deploy("", "--app", ROOT / "examples/app_asyncio.py")
    client = board.connect("client")
    client.subscribe("app/done/+", qos=1)
    for name in ("a", "b"):
        client.publish(f"app/do/{name}", b"now", 1)
        client.receive(f"app/done/{name}", b"now", 1)


def test_one_that_cannot_be_loaded_is_safe_mode_and_told(board: Deployed) -> None:
    app = board.folder / "broken.py"
    app.write_text("import nothing_of_that_name\ndef start(broker): pass\n")
    words = ["deploy", "--board", NAME, "--ppp", "--port", board.board.device, "--app", app]
    status, said = board.cli(*words)
    assert status == 1
    assert "slotmq: safe mode: app.py: ImportError" in said, said

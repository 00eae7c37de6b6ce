"""Applications beside the broker, installed by `slotmq deploy --app`."""

from pathlib import Path

from .conftest import NAME, Deployed

ROOT = Path(__file__).parents[2]


def test_the_example_of_embed_md(board: Deployed) -> None:
    guide = (ROOT / "docs/embed.md").read_text()
    app = board.folder / "doorbell.py"
    app.write_text(guide.split("```python\n")[1].split("```")[0])
    board.deploy("listener 1883\nallow_anonymous true\n", "--app", app)
    client = board.connect("client")
    client.subscribe("hall/light", qos=0)
    client.receive("hall/light", b"off", 0, retain=True)
    client.publish("door/bell", b"", 1)
    client.receive("hall/light", b"on", 0)


def test_an_asyncio_application(board: Deployed) -> None:
    board.deploy("", "--app", ROOT / "examples/app_asyncio.py")
    client = board.connect("client")
    client.subscribe("app/done/+", qos=1)
    for name in ("a", "b"):
        client.publish(f"app/do/{name}", b"now", 1)
        client.receive(f"app/done/{name}", b"now", 1)


def test_an_application_that_cannot_be_imported_is_reported_by_safe_mode(board: Deployed) -> None:
    app = board.folder / "broken.py"
    app.write_text("import nothing_of_that_name\ndef start(broker): pass\n")
    words = ["deploy", "--board", NAME, "--ppp", "--port", board.board.device, "--app", app]
    status, said = board.cli(*words)
    assert status == 1
    assert "safe mode" in said and "app.py: ImportError" in said, said

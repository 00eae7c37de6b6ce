"""A page in Chromium, which the broker itself serves: 1,000 messages, and a reconnect."""

import shutil
import subprocess
from pathlib import Path

import pytest

from slotmq_dev.peers import chromium, node

from ..interop.paho_client import Paho
from .conftest import Web
from .test_clients import TIMEOUT_S

PAGE = Path(__file__).with_name("page.html")


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_page_in_a_browser(web: Web, scheme: str, tmp_path: Path) -> None:
    shutil.copy(PAGE, web.www)
    shutil.copy(node.packages() / "mqtt/dist/mqtt.min.js", web.www)
    port = web.ws if scheme == "http" else web.wss
    witness = Paho(f"witness{scheme}")
    witness.connect(("127.0.0.1", web.tcp))
    witness.publish("page/result", b"", 1, retain=True)
    witness.subscribe(("page/result", 1))
    url = f"{scheme}://localhost:{port}/{PAGE.name}"
    command = chromium.command(tmp_path, "--ignore-certificate-errors", url)
    with (tmp_path / "log").open("w") as log:
        browser = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        result = witness.receive().payload.decode()
        assert result == "1001 messages, 2 connects", (tmp_path / "log").read_text()
    finally:
        browser.kill()
        browser.wait(TIMEOUT_S)
    witness.leave()

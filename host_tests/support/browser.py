"""A page in Chromium without a window: over the DevTools protocol."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from websockets.sync.client import ClientConnection, connect

from slotmq_dev.peers import chromium

_WAIT_S = 60.0


class Page:
    """The one that is open."""

    def __init__(self, link: ClientConnection) -> None:
        self._link, self._number = link, 0

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        asked = {"id": self._number, "method": method, "params": parameters}
        self._link.send(json.dumps(asked))
        while True:
            told = json.loads(self._link.recv(_WAIT_S))
            if told.get("id") == self._number:
                assert "error" not in told, told
                result: dict[str, Any] = told["result"]
                return result

    def open(self, file: Path, width: int, height: int = 900) -> None:
        """Show a file in a window of this size, in pixels."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                   deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        self._call("Page.navigate", url=file.absolute().as_uri())
        self.wait("document.readyState === 'complete'")

    def run(self, script: str) -> Any:
        """What an expression of JavaScript is, after it has settled."""
        done = self._call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until an expression is true."""
        deadline = time.monotonic() + _WAIT_S
        while not self.run(condition):
            assert time.monotonic() < deadline, condition
            time.sleep(0.05)

    def picture(self) -> bytes:
        """All of the page, as PNG."""
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        done = self._call("Page.captureScreenshot", captureBeyondViewport=True,
                          clip={**size, "x": 0, "y": 0, "scale": 1})  # fmt: skip
        return base64.b64decode(done["data"])


@contextmanager
def page(folder: Path) -> Iterator[Page]:
    """An empty page; the browser keeps its files in `folder`."""
    command = chromium.command(folder / "profile", "--remote-debugging-port=0", "about:blank")
    log = folder / "browser.log"
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        with connect(_address(log, process), max_size=None) as link:
            yield Page(link)
    finally:
        process.kill()
        process.wait(_WAIT_S)


def _address(log: Path, process: subprocess.Popen[bytes]) -> str:
    """Where the page answers."""
    deadline = time.monotonic() + _WAIT_S
    while not (found := re.search(r"DevTools listening on ws://(\S+?)/", log.read_text())):
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)
    with urlopen(f"http://{found[1]}/json/list", timeout=_WAIT_S) as answer:
        (target,) = (each for each in json.load(answer) if each["type"] == "page")
    address: str = target["webSocketDebuggerUrl"]
    return address

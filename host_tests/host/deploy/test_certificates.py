"""The certificates and keys of a board's listeners: what of them deploy copies, and as what."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from host_tests.host.deploy.fake_repl import FakeRepl, deployed
from slotmq_tools.cli import main
from slotmq_tools.deploy import configuration
from slotmq_tools.deploy.mqtt_client import Login
from slotmq_tools.errors import ToolError

BOARD = "RPI_PICO_W"
pytestmark = pytest.mark.usefixtures("tested", "one_module")
CONF = """\
listener 8883
allow_anonymous true
mqtt_versions 3
limit message_bytes 4096
limit tls_connections 1
certfile certs/server.crt
"""
DER = b"\x30\x82"


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls") / "certs"
    assert CliRunner().invoke(main, ["certs", str(folder)]).exit_code == 0
    return folder


@pytest.fixture
def board() -> FakeRepl:
    return FakeRepl()


def conf(certs: Path, *lines: str) -> Path:
    file = certs.parent / "mine.conf"
    file.write_text(CONF + "".join(f"{line}\n" for line in lines))
    return file


def source(certs: Path, *lines: str) -> configuration.Source:
    return configuration.from_file(conf(certs, *lines))


KEY = "keyfile certs/server.key"


def test_they_are_copied_in_der_and_kept_by_the_next_deploy(board: FakeRepl, certs: Path) -> None:
    deployed(board, conf=conf(certs, KEY, "cafile certs/ca.crt"))
    names = "server.crt", "server.key", "ca.crt"
    before = {name: board.files[f"/certs/{name}"] for name in names}
    assert [before[name][:1] for name in names] == [DER[:1]] * 3
    assert not any(b"PRIVATE" in content for content in board.files.values() if content[:1] == DER)
    assert not any("ca.key" in path for path in board.files)
    lines = deployed(board)
    assert {name: board.files[f"/certs/{name}"] for name in names} == before
    assert any("/certs/server.key" in line for line in lines if line.startswith("kept"))


@pytest.mark.parametrize(
    ("file", "text", "wanted"),
    [
        ("server.crt", "ca.crt", "the certificate of a CA, whose key belongs on no board"),
        ("server.crt", "chain", "expected one certificate in PEM, which a board takes without"),
        ("server.key", "ca.key", "keyfile: expected the key of the certificate in certfile"),
        ("server.key", "rsa", "expected one ECDSA P-256 key in PEM without a password"),
        ("server.key", "nothing", "expected one ECDSA P-256 key in PEM without a password"),
    ],
)
def test_what_is_refused(file: str, text: str, wanted: str, certs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    folder.mkdir()
    for name in ("server.crt", "server.key"):
        (folder / name).write_bytes((certs / name).read_bytes())
    contents = {
        "chain": (certs / "server.crt").read_text() + (certs / "ca.crt").read_text(),
        "rsa": "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n",
        "nothing": "",
    }
    made = contents[text] if text in contents else (certs / text).read_text()
    (folder / file).write_text(made)
    with pytest.raises(ToolError, match=wanted):
        configuration.make(source(folder, KEY), BOARD)


def test_one_that_is_nowhere(certs: Path) -> None:
    with pytest.raises(ToolError, match=r"keyfile other\.key: .*the board has no /other\.key"):
        configuration.make(source(certs, "keyfile other.key"), BOARD)


def test_an_rp2040_tells_no_name_of_a_client(certs: Path) -> None:
    lines = KEY, "cafile certs/ca.crt", "require_certificate true", "use_identity_as_username true"
    with pytest.raises(ToolError, match="keeps no certificate of a client"):
        configuration.make(source(certs, *lines), BOARD)


def test_how_the_broker_is_tested(certs: Path) -> None:
    """With the CA beside the certificate; not at all where each client needs a certificate."""
    found = configuration.make(source(certs, KEY), BOARD)
    assert found.login_for_test(Login()) == Login(cafile=str(certs / "ca.crt"))
    assert found.login_for_test(Login(cafile="mine")) == Login(cafile="mine")
    lines = KEY, "cafile certs/ca.crt", "require_certificate true"
    assert configuration.make(source(certs, *lines), BOARD).login_for_test(Login()) is None
    plain = configuration.make(configuration.Source(), BOARD)
    assert plain.login_for_test(Login(cafile="mine")) == Login()

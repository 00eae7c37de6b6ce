"""What platform/x509.py reads in certificates, here on CPython, beside `cryptography`."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

from slotmq.platform import x509 as ours

DAY = timedelta(1)
PEM, DER = serialization.Encoding.PEM, serialization.Encoding.DER
FORMS = [
    serialization.PrivateFormat.TraditionalOpenSSL,
    serialization.PrivateFormat.PKCS8,
]


def certificate(key: Any, begin: timedelta = -DAY, end: timedelta = DAY) -> Any:
    now = datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "é")])
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 1)
    builder = builder.not_valid_before(now + begin).not_valid_after(now + end)
    return builder.sign(key, hashes.SHA256())


def private(key: Any, encoding: Any = PEM, form: Any = FORMS[1]) -> bytes:
    data: bytes = key.private_bytes(encoding, form, serialization.NoEncryption())
    return data


@pytest.fixture(scope="module")
def keys() -> list[Any]:
    curves = ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()
    return [rsa.generate_private_key(65537, 2048), *map(ec.generate_private_key, curves)]


@pytest.mark.parametrize("encoding", [PEM, DER])
@pytest.mark.parametrize("form", FORMS)
def test_a_key_and_its_certificate(encoding: Any, form: Any, keys: list[Any]) -> None:
    for key in keys:
        data = certificate(key).public_bytes(encoding)
        assert ours.check(data, private(key, encoding, form)) == ([], [])


def test_another_key() -> None:
    for one, other in (
        [rsa.generate_private_key(65537, 2048) for _ in "12"],
        [ec.generate_private_key(ec.SECP256R1()) for _ in "12"],
        [ec.generate_private_key(ec.SECP384R1()) for _ in "12"],
    ):
        errors, _ = ours.check(certificate(one).public_bytes(PEM), private(other))
        assert errors == [("keyfile", "the key of the certificate in certfile")]


@pytest.mark.parametrize(
    ("begin", "end", "when"),
    [(DAY, 2 * DAY, "before"), (-2 * DAY, -DAY, "after"), (10_000 * DAY, 20_000 * DAY, "before")],
)
def test_dates(begin: timedelta, end: timedelta, when: str, keys: list[Any]) -> None:
    """Of two and of four digits for the year: from 2050 on."""
    one = certificate(keys[1], begin, end)
    ((key, text),) = ours.check(one.public_bytes(PEM), private(keys[1]))[1]
    date = (one.not_valid_before_utc if when == "before" else one.not_valid_after_utc).date()
    assert (key, text.split(",")[0]) == ("certfile", f"the certificate is not valid {when} {date}")


def test_a_clock_that_is_not_set(keys: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "gmtime", lambda: (2021, 1, 1, 0, 0, 0, 4, 1))
    assert ours.check(certificate(keys[1]).public_bytes(PEM), private(keys[1])) == ([], [])

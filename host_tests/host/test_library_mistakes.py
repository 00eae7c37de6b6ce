"""What a program on CPython does wrong with the library is one clear error, at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slotmq import Broker, Limits, Settings


class Misspelt:
    def may_conect(self, *_: object) -> int:
        return 0


class NoFunction:
    on_publish = 1


def assigned_later(**values: object) -> Settings:
    settings = Settings()
    for name, value in values.items():
        setattr(settings, name, value)
    return settings


MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: Limits(conections=8), ValueError, "no such limit: conections; did you mean connec"),
    (lambda: Limits(connections="8"), TypeError, "connections: expected int, not '8'"),  # type: ignore[arg-type]
    (lambda: Settings(max_qoss=1), TypeError, "no max_qoss; did you mean max_qos?"),
    (
        lambda: Broker(settings=assigned_later(max_qoss=1)),
        TypeError,
        "no max_qoss; did you mean max_qos?",
    ),
    (lambda: Broker(settings=Settings(max_qos="1")), TypeError, "max_qos: expected int, not '1'"),
    (lambda: Broker(settings=Settings(max_qos=7)), ValueError, "max_qos: 0 to 2, not 7"),
    (
        lambda: Broker(settings=Settings(when_full={"session": "refuse"})),
        ValueError,
        "no table is called session; did you mean sessions?",
    ),
    (lambda: Broker(Settings()), TypeError, r"expected limits=Limits(...), not <slotmq"),  # type: ignore[arg-type]
    (lambda: Broker(settings={}), TypeError, r"expected settings=Settings(...), not {}"),  # type: ignore[arg-type]
    (lambda: setattr(Broker(), "hooks", Misspelt()), ValueError, "did you mean may_connect?"),
    (lambda: setattr(Broker(), "hooks", Misspelt), TypeError, "an object, Misspelt(), not the"),
    (lambda: setattr(Broker(), "hooks", NoFunction()), TypeError, "on_publish: expected a func"),
    (lambda: Broker().publish("a", 21.5), TypeError, "a str or bytes, not 21.5 of type float"),  # type: ignore[arg-type]
    (lambda: Broker().client("a").publish("a", 2), TypeError, "a str or bytes, not 2 of type int"),  # type: ignore[arg-type]
    (lambda: Broker().client("a", will=5), ValueError, "will: (topic, payload, QoS, RETAIN)"),  # type: ignore[arg-type]
    (lambda: Broker().subscribe("a/#/b", print), ValueError, "# is the last"),
    (lambda: Broker().listen("127.0.0.1", 99999), ValueError, "to 65535, not 99999"),
    (lambda: Broker().listen("127.0.0.1", "1883"), TypeError, "port: expected a number"),  # type: ignore[arg-type]
    (lambda: Broker().listen(1883), TypeError, "host: expected a str, not 1883"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("act", "kind", "said"), MISTAKES, ids=[said for _, _, said in MISTAKES])
def test_a_mistake_is_a_clear_error(
    act: Callable[[], Any], kind: type[Exception], said: str
) -> None:
    with pytest.raises(kind) as error:
        act()
    assert said in str(error.value)


def test_hooks_may_have_other_names_too() -> None:
    class Hooks:
        def count(self) -> None:
            pass

        def on_message(self) -> None:
            pass

        def on_connect(self, _client_id: bytes) -> None:
            pass

    with Broker() as broker:
        broker.hooks = hooks = Hooks()
        assert broker.hooks is hooks


# The journal


def persistent(folder: Path) -> Broker:
    return Broker(settings=Settings(persistence=True, persistence_location=str(folder)))


def test_a_broker_that_would_keep_nothing_does_not_run(tmp_path: Path) -> None:
    with (
        persistent(tmp_path) as broker,
        pytest.raises(RuntimeError, match=r"call broker\.restore\(\) first"),
    ):
        broker.turn(0)


def test_restore_brings_back_what_was_retained(tmp_path: Path) -> None:
    with persistent(tmp_path) as broker:
        broker.restore()
        broker.publish("lamp", "on", 1, True)
        broker.turn(0)
    got: list[Any] = []
    with persistent(tmp_path) as broker:
        broker.restore()
        broker.subscribe("lamp", lambda *message: got.append(message))
        broker.turn(0)
    assert got == [("lamp", b"on", 0, 1)]


def test_restore_says_what_is_wrong(tmp_path: Path) -> None:
    with Broker() as broker, pytest.raises(ValueError, match=r"Settings.persistence=True"):
        broker.restore()
    with persistent(tmp_path / "none") as broker, pytest.raises(ValueError, match="that is there"):
        broker.restore()
    with persistent(tmp_path) as broker:
        broker.restore()
        with pytest.raises(RuntimeError, match="there already"):
            broker.restore()
        with (
            persistent(tmp_path) as other,
            pytest.raises(OSError, match="that no other broker keeps"),
        ):
            other.restore()
    with persistent(tmp_path) as broker:  # the one before has released it
        broker.restore()

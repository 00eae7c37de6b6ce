# What a program may use of slotmq, on CPython. host_tests/host/test_library.py compares it with
# the code.
from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from slotmq.config import settings as _settings

_T = TypeVar("_T")
_Text = str | bytes
_Callback = Callable[[str, bytes, int, int], object]

__version__: str
__all__ = ("Broker", "Limits", "Settings")

class Limits:
    connections: int
    tls_connections: int
    sessions: int
    subscriptions: int
    nodes: int
    name_bytes: int
    levels: int
    topic_bytes: int
    client_id_bytes: int
    retained: int
    retained_name_bytes: int
    messages: int
    message_bytes: int
    message_block: int
    deliveries: int
    inflight: int
    queued: int
    received: int
    max_packet: int
    tx_bytes: int
    tcp_bytes: int
    rx_bytes: int
    tail_bytes: int
    reassembly: int
    routes: int
    route_topic_bytes: int
    route_entries: int
    shares: int
    aliases: int
    users: int
    acl_rules: int
    acl_bytes: int
    bridges: int
    bridge_topics: int
    def __init__(self, **values: int) -> None: ...
    def replaced(self, values: dict[str, int]) -> Limits: ...
    def rows(self) -> list[tuple[str, int, int]]: ...
    def ram_bytes(self) -> int: ...
    def hole_bytes(self) -> int: ...

class Settings(_settings.Settings):
    listeners: list[tuple[str | None, int, int, dict[str, Any]]]
    when_full: dict[str, str]
    def __init__(self, when_full: dict[str, str] | None = None, **values: object) -> None: ...
    def check(self, limits: Limits) -> None: ...

class _Client(Protocol):
    @property
    def is_connected(self) -> bool: ...
    def subscribe(self, topic_filter: _Text, callback: _Callback, qos: int = 0) -> int: ...
    def hear(self, topic_filter: _Text, callback: _Callback) -> None: ...
    def unsubscribe(self, topic_filter: _Text) -> None: ...
    def publish(
        self, topic: _Text, payload: _Text = b"", qos: int = 0, retain: bool = False
    ) -> bool: ...
    def disconnect(self) -> None: ...

class _Bridge:
    losses: int
    refusals: dict[str, int]
    def text(self) -> str: ...

class Broker:
    limits: Limits
    settings: Settings
    hooks: Any
    log: Callable[[int, str], object] | None
    log_mask: int
    on_reload: Callable[[], object] | None
    loop: Any
    def __init__(self, limits: Limits | None = None, settings: Settings | None = None) -> None: ...
    # In any thread
    def call(self, function: Callable[..., _T], *args: Any) -> _T: ...
    def wake(self) -> None: ...
    def publish(
        self, topic: _Text, payload: _Text = b"", qos: int = 0, retain: bool = False
    ) -> bool: ...
    def subscribe(self, topic_filter: _Text, callback: _Callback, qos: int = 0) -> int: ...
    def listen(
        self,
        host: str = "127.0.0.1",
        port: int = 1883,
        max_connections: int | None = 0,
        options: dict[str, Any] | None = None,
    ) -> tuple[str, int]: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...
    # In one thread at a time
    def apply_settings(self) -> None: ...
    def check_thread(self) -> None: ...
    def turn(self, timeout_ms: int = 250) -> None: ...
    def run(self) -> None: ...
    async def serve(self) -> None: ...
    def restore(self) -> None: ...
    def client(
        self,
        client_id: _Text = "",
        clean: bool = True,
        will: tuple[_Text, _Text, int, bool] | None = None,
    ) -> _Client: ...
    def bridge(
        self,
        name: str,
        addresses: str | Sequence[str],
        topics: Sequence[tuple[Any, ...]],
        **options: Any,
    ) -> _Bridge: ...
    def reload(self) -> None: ...
    def compact(self) -> None: ...
    def dump_tree(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    # The broker's tables and steps, which may change with each version
    def __getattr__(self, name: str) -> Any: ...

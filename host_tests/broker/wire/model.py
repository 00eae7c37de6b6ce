"""What a broker does, said in dicts: who is owed which messages after each step.

It knows no packets, no windows and no time. Clients read all that they are sent
after each step, and acknowledge it then or never.
"""

from dataclasses import dataclass, field, replace

from .codec import Publish, Will


@dataclass
class Session:
    clean: bool
    connected: bool = True
    will: Will | None = None
    filters: dict[str, int] = field(default_factory=dict)
    unread: list[Publish] = field(default_factory=list)  # owed, and not sent yet
    open: list[Publish] = field(default_factory=list)  # sent, and not acknowledged


class Model:
    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.retained: dict[str, Publish] = {}

    def connect(self, name: str, clean: bool, will: Will | None) -> bool:
        """A client connects, perhaps a second time; was its session there?"""
        if name in self.sessions and self.sessions[name].connected:
            self.leave(name, in_order=False)
        old = None if clean else self.sessions.pop(name, None)
        self.sessions[name] = session = old or Session(clean)
        session.connected, session.clean, session.will = True, clean, will
        again = [replace(message, dup=True) for message in session.open]
        session.unread, session.open = again + session.unread, []
        return old is not None

    def leave(self, name: str, *, in_order: bool) -> None:
        """Its connection ends, by DISCONNECT or otherwise."""
        session = self.sessions[name]
        session.connected = False
        if session.clean:
            del self.sessions[name]
        if session.will and not in_order:
            will = session.will
            self.publish(Publish(str(will.topic), will.payload, will.qos, will.retain))
        session.will = None

    def subscribe(self, name: str, topic_filter: str, qos: int) -> None:
        session = self.sessions[name]
        session.filters[topic_filter] = qos
        for kept in self.retained.values():
            if matches(topic_filter, kept.topic):
                session.unread.append(replace(kept, qos=min(qos, kept.qos)))

    def unsubscribe(self, name: str, topic_filter: str) -> None:
        self.sessions[name].filters.pop(topic_filter, None)

    def publish(self, message: Publish) -> None:
        if message.retain:
            self.retained.pop(message.topic, None)
            if message.payload:
                self.retained[message.topic] = message
        for session in self.sessions.values():
            granted = [q for f, q in session.filters.items() if matches(f, message.topic)]
            qos = min(message.qos, max(granted, default=0))
            if granted and (session.connected or qos):
                session.unread.append(replace(message, qos=qos, retain=False))

    def read(self, name: str, *, acknowledge: bool) -> list[Publish]:
        """What the client is sent now."""
        session = self.sessions[name]
        unread, session.unread = session.unread, []
        if not acknowledge:
            session.open += [message for message in unread if message.qos]
        return unread


def matches(topic_filter: str, topic: str) -> bool:
    return _levels_match(topic_filter.split("/"), topic.split("/"))


def _levels_match(wanted: list[str], levels: list[str]) -> bool:
    if not wanted or wanted[0] == "#":
        return bool(wanted) or not levels
    if not levels:
        return False
    return wanted[0] in ("+", levels[0]) and _levels_match(wanted[1:], levels[1:])

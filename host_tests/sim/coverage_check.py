"""Is a campaign worth what it says? Its seeds must be real ones, and all must have happened."""

from collections.abc import Sequence

from .campaign import Outcome, totals
from .persistence.storage import RECORD_TYPES

ENOUGH = 500  # seeds, of which one campaign must see everything
# On average of its seeds
_PACKETS, _CLIENTS, _REBOOTS = 300, 3, 1
_RECORDS = [f"cut_{kind.replace(' ', '_')}" for kind in RECORD_TYPES]
# Tables that were full, time, sessions under stress, every medium of the journal, every kind
# of reboot, and every record in the midst of a cut.
MUST_SEE = {
    *("full_connections", "full_sessions", "full_subscriptions", "full_nodes", "full_retained"),
    *("full_messages", "full_deliveries", "full_received", "full_reassembly", "full_shares"),
    *("full_node_names", "full_retained_names", "full_message_bytes", "full_aliases"),
    *("wrapped", "takeover", "evicted", "expired_session", "will_sent", "alias", "shared"),
    *("passed_on", "dropped", "sent_again", "no_heap"),
    *("medium_none", "medium_flash", "medium_littlefs", "medium_host", "interval"),
    *("reboot_off", "reboot_stop", "reboot_cut", "reboot_cut_start", "reboot_cut_stop"),
    *("rot", "rot_lost_some", "filled", "full_journal", "cut_switch", *_RECORDS),
}


def averages(outcomes: Sequence[Outcome]) -> str:
    """Packets, clients and reboots of a seed."""
    packets, clients, reboots = _averages(outcomes)
    return f"{packets:.0f} packets, {clients:.1f} clients and {reboots:.2f} reboots each"


def doubts(outcomes: Sequence[Outcome]) -> list[str]:
    """What takes the worth of the campaign away, a line each."""
    if len(outcomes) < ENOUGH:
        return []
    found = []
    for what, is_, least in zip(
        ("packets", "clients", "reboots"),
        _averages(outcomes),
        (_PACKETS, _CLIENTS, _REBOOTS),
        strict=True,
    ):
        if is_ < least:
            found.append(f"{is_:.2f} {what} a seed, of at least {least}")
    events = totals(outcomes)
    found += [f"never seen: {name}" for name in sorted(MUST_SEE) if not events[name]]
    return found


def _averages(outcomes: Sequence[Outcome]) -> tuple[float, float, float]:
    packets = sum(outcome.packets for outcome in outcomes)
    clients = sum(outcome.clients for outcome in outcomes)
    many = len(outcomes)
    return packets / many, clients / many, totals(outcomes)["reboot"] / many

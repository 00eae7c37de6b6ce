"""Did a campaign reach every case that it must cover, with seeds that are busy enough?"""

from collections.abc import Sequence

from .campaign import Outcome, totals
from .persistence.observed_medium import RECORD_TYPES

ENOUGH = 500  # seeds; a smaller campaign need not cover everything
_PACKETS, _CLIENTS, _REBOOTS = 300, 3, 1  # of an average seed, at least
_RECORDS = [f"cut_{kind.replace(' ', '_')}" for kind in RECORD_TYPES]
# Each table full, time, sessions under stress, the fast path, each medium of the journal, each
# kind of reboot, and a power cut while each type of record was written.
MUST_SEE = {
    *("full_connections", "full_sessions", "full_subscriptions", "full_nodes", "full_retained"),
    *("full_messages", "full_deliveries", "full_received", "full_reassembly", "full_shares"),
    *("full_node_names", "full_retained_names", "full_message_bytes", "full_aliases"),
    *("wrapped", "takeover", "evicted", "expired_session", "will_sent", "alias", "shared"),
    *("passed_on", "dropped", "sent_again", "no_heap", "denied", "another_user"),
    *("other_rules", "forbidden", "long_topic"),
    *(f"fast_QoS_{qos}_{kind}" for qos in (0, 1, 2) for kind in ("3", "5", "mixed")),
    *("fast_QoS_0_properties", "fast_QoS_1_properties", "fast_QoS_2_properties", "fast_alias"),
    *("medium_none", "medium_flash", "medium_littlefs", "medium_host", "interval"),
    *("reboot_off", "reboot_stop", "reboot_cut", "reboot_cut_start", "reboot_cut_stop"),
    *("rot", "rot_lost_some", "filled", "full_journal", "cut_switch", *_RECORDS),
}

# The same of two brokers with a bridge
MUST_SEE_OF_BRIDGE = {
    *(f"cut_{how}" for how in ("both", "here", "there", "frozen", "down")),
    *(
        f"reboot_{how}_{end}"
        for how in ("off", "stop", "cut", "packet")
        for end in ("here", "there")
    ),
    *("cut_message", "cut_delivery", "cut_delivery_released", "cut_delivery_gone"),
    *("cut_received", "forgotten", "dialled_lazy", "sent_again", "QoS_1_again"),
}


def averages(outcomes: Sequence[Outcome]) -> str:
    """Describe the packets, clients and reboots of an average seed."""
    packets, clients, reboots = _averages(outcomes)
    return f"{packets:.0f} packets, {clients:.1f} clients and {reboots:.2f} reboots each"


def gaps(outcomes: Sequence[Outcome]) -> list[str]:
    """Return what the campaign did not cover, one line each."""
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

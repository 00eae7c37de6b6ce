# tables.py - how many entries every table of a broker has, on both runtimes.
_NONE = 0xFFFF


def counts(broker):
    """What a client could leave behind: name -> number of entries."""
    found = {}
    for table in (_connections, _sessions, _subscriptions, _messages):
        found.update(table(broker))
    if broker.five:
        found.update(_version5(broker.five, broker.subscriptions.kind))
    return found


def _connections(broker):
    conns = broker.conns
    return {
        "connections": conns.count,
        "streams": len(broker.loop.of_stream) if broker.loop else 0,
        "paused": sum([events > 0 for events in broker.loop.paused]) if broker.loop else 0,
        "ending": broker.ending_count,
        "dirty": conns.counts[0],
        "partial packets": sum(conns.buffered),
        "reassembly buffers": sum([owner != _NONE for owner in conns.reassembly_owner]),
        "messages in chunks": sum([msg != _NONE for msg in conns.chunked_msg]),
    }


def _sessions(broker):
    sessions = broker.sessions
    return {
        "connected": broker.connected,
        "sessions": sessions.names.count(),
        "client id space": space(sessions.names),
        "ids received": sum(sessions.id_count),
        "scans": sum(sessions.scans),
    }


def _subscriptions(broker):
    subs = broker.subscriptions
    return {
        "subscriptions": subs.count,
        "nodes": subs.nodes.count(),
        "node space": space(subs.nodes),
        "retained": broker.retained.names.count(),
        "retained space": space(broker.retained.names),
    }


def _messages(broker):
    return {
        "messages": broker.messages.count[0],
        "message space": broker.messages.arena.free_blocks(),
        "deliveries": broker.deliveries.count[0],
        "pending": broker.deliveries.pending[0],
    }


def came_by(broker, entry):
    """The group and the identifier of the subscription by which a delivery came."""
    five = broker.five
    if broker.deliveries.flags[entry] & 64:
        return five.group[entry], five.ident[entry]
    return _NONE, 0


def _version5(five, kinds):
    scram = five.scram.exchanges if five.scram else ()
    return {
        "topic aliases": five.aliases.count,
        "alias space": five.aliases.arena.free_blocks(),
        "groups": five.shares.names.count(),
        "group space": space(five.shares.names),
        "members": sum(five.shares.refs),
        "options": sum([options != 0 for options in five.options]),
        "identifiers": sum([number != 0 for number in five.identifier]),
        "sessions of version 5": sum([kind != 0 for kind in kinds]),
        "exchanges": len(five.exchanges),
        "exchanges of SCRAM": len(scram),
    }


def space(names):
    """Free blocks for the text of a set of names; CPython's twin only counts them."""
    return names.text.free_blocks() if hasattr(names, "text") else names._blocks

# control.py - rare steps of a whole broker: making its loop and listeners, taking over settings at
# the start and after a reload, and shutdown. Loaded on demand; owns nothing. Control plane: may
# allocate.
from slotmq.constants import (ANNOUNCED, DEBUG, DIRTY_CONNS, FAST_MAX, INFLIGHT_BYTES,
    MAX_INFLIGHT, MAX_QUEUED, MORE_QUEUED, NONE, PACKET_MAX, POLICY_DISCONNECT, QUEUES,
    QUOTAS_FROM, STOPPING, S_MOST, UNDER_WAY)
from slotmq.delivery import lifecycle
from slotmq.fast import next_dirty, odd_text
from slotmq.net.loop import Loop
from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON

if MICROPYTHON:
    from slotmq.platform.listening_micropython import clock, make_poller, open_listener
else:
    from slotmq.fast.turn_cpython import make_poller
    from slotmq.platform.sockets_cpython import clock, open_listener


def make(broker):
    """Make the broker's loop."""
    broker.loop = Loop(broker, make_poller(broker), clock)
    # A program may have put its own turn() there, or have made a class with one
    if MICROPYTHON and type(broker).__name__ == "Broker" and "turn" not in broker.__dict__:
        broker.turn = broker.loop.turn  # found in one look-up
    _log_outgoing(broker)


def _log_outgoing(broker):
    # While debug lines are logged: also what goes out.
    loop = broker.loop
    if broker._log_mask & DEBUG and loop and not hasattr(loop, "sent"):
        loop.sent = ondemand.take("status.log_outgoing", broker.now).make(broker, loop)


def listen(broker, host, port, most, options):
    """Broker.listen()."""
    return open_listener(broker.loop, broker.settings, host, port, most, options)


def apply_settings(broker):
    """Take over the settings that a reload may have changed."""
    s = broker.settings
    limits = broker.limits
    window = broker.deliveries.window
    window[MAX_INFLIGHT] = s.max_inflight_messages or limits.inflight
    if s.mqtt_versions == 3 and not s.max_inflight_messages:  # any client may be a bridge
        window[MAX_INFLIGHT] = min(window[MAX_INFLIGHT], UNDER_WAY)
    if broker.journal and min(window[MAX_INFLIGHT], NONE) > broker.journal.window:
        broker.journal.whole = False  # the journal's window is written by the next compaction
    window[MAX_QUEUED] = most = s.max_queued_messages or limits.queued
    size = getattr(s, "max_queued_bytes", 0)
    if size:  # so many wait in any case; delivery/quota.py looks at the bytes of more
        window[MAX_QUEUED] = min(most, (size - 1) // limits.max_packet + 1)
    broker.deliveries.count[MORE_QUEUED] = most - window[MAX_QUEUED]
    # A reload does not lower what was announced to clients.
    most = min(s.max_inflight_messages or limits.received, limits.received)
    broker.sessions.ids_high[ANNOUNCED] = max(broker.sessions.ids_high[ANNOUNCED], most)
    broker.deliveries.count[INFLIGHT_BYTES] = getattr(s, "max_inflight_bytes", 0)
    broker.retained.quota = min(s.max_session_share, s.max_offline_share)
    broker.retained.set_quotas(0)
    broker.deliveries.count[QUOTAS_FROM] = broker.deliveries.slots * broker.retained.quota // 100
    # The lowest of all listeners: a higher QoS is looked at more closely.
    broker.max_qos = min([s.max_qos] + [each[3].get("max_qos", 2) for each in s.listeners])
    odd_text[0] = getattr(s, "allow_control_characters", 0)
    broker.queue_qos0 = s.queue_qos0_messages
    broker.upgrade_qos = s.upgrade_outgoing_qos
    broker.pkt[PACKET_MAX] = most = s.max_packet_size or limits.max_packet
    broker.pkt[FAST_MAX] = min(most, s.message_size_limit or most)
    # The result of a PUBLISH that finds no message slot
    broker.when_no_message = POLICY_DISCONNECT if s.when_full["messages"] == "disconnect" else 0
    broker.retry = None
    if s.retry_interval:
        from slotmq.delivery.retry import retry

        broker.retry = retry
    _choose_fast_path(broker)
    _log_outgoing(broker)
    if broker.hooks:
        from slotmq.embed import hooks

        hooks.watch(broker, broker.hooks)
    if broker.five:
        most = broker.five.aliases.most
        broker.five.alias_max = min(most, s.max_topic_alias)
        broker.five.alias_max_out = min(most, s.max_topic_alias_broker)


def _choose_fast_path(broker):
    # plain: is no check of a PUBLISH's sender, size and QoS needed?
    s = broker.settings
    upgrades = broker.upgrade_qos
    broker.plain = not (broker.may_publish or broker.acl or upgrades or s.message_size_limit)
    # asks(conn, buf, topic, n): may the client publish this? None: nobody is asked
    hook = None
    if broker.may_publish:
        hook = ondemand.take("embed.asking", broker.now).Publishers(broker).ask
    broker.asks = hook
    if broker.acl:
        broker.acl.hook = hook
        broker.asks = broker.acl.asks
    # A hook may let its verdicts be kept, as those of acl_file are: then it is asked once for each
    # client and topic. What was allowed before is asked again.
    keeps = broker.may_publish and getattr(broker.hooks, "cache_verdicts", False)
    if keeps and not broker.subscriptions.routes.senders:
        ondemand.take("fast.columns", broker.now).make(broker, True)
    if broker.subscriptions.routes.senders:
        broker.subscriptions.forget_routes()
    if MICROPYTHON:  # the fast path looks whether receivers are away or have a queue
        broker.tables[QUEUES] = 1 if broker.queue_qos0 else 0
        if broker.sessions.id_msg is None:
            broker.tables[S_MOST] = broker.sessions.ids_high[ANNOUNCED]
    # fast_path: fast_columns, or None while each packet must be looked at, for instance to log it
    short = (keeps or not broker.may_publish) and not upgrades
    short = short and broker.max_qos == 2
    short = short and not broker.subscriptions.every and not broker._log_mask & DEBUG
    short = short and not broker.journal_full and not (broker.journal and broker.journal.limit)
    # on_publish is told who publishes: embed/publishers.py
    told = getattr(broker.hooks, "with_peer", False) and hasattr(broker.hooks, "on_publish")
    broker.fast_path = broker.fast_columns if short and not told else None


def end(loop):
    """Shut down: end every connection. Wills are published before that, or stay in the journal for
    the next start, which publishes them [MQTT 5.0, 3.1.2.5]."""
    broker = loop.broker
    journal = broker.journal
    _detach_ending(broker)
    if journal and not journal.always:
        broker.no_commit = 0  # after Ctrl-C within a packet: half of its rows are better than none
        journal.interval = 0
        journal.commit()
    if not journal or not journal.always and not journal.whole:  # the medium takes nothing
        for session in range(broker.sessions.slots):
            lifecycle.publish_will(broker, session)
    loop.finish_turn()
    conns = loop.conns
    for conn in range(conns.slots):
        if conns.state[conn]:
            broker.end(conn, STOPPING)
    if journal:
        _close_journal(loop, journal)
    loop.finish_turn()


def _detach_ending(broker):
    for i in range(broker.ending_count):
        lifecycle.detach(broker, broker.ending[i])


def _close_journal(loop, journal):
    # The journal has the wills since their CONNECT, and the sessions as connected. Neither is
    # written again, so that the next start finds the state of a power cut. Output is flushed
    # before the journal is closed; after that no session has a connection.
    broker = loop.broker
    while loop.conns.counts[DIRTY_CONNS]:
        conn = next_dirty(loop.conns.columns)
        if conn != NONE:
            loop.flush(conn)
    journal.close()
    broker.journal = None
    for session in range(broker.sessions.slots):
        lifecycle.drop_will(broker, session)
    _detach_ending(broker)

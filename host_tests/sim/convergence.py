# convergence.py - after the faults: every message that is owed must arrive within a bound, and
# nothing may be left in the broker after its clients have ended their sessions.
from ..broker.unit.support.invariants import broken
from ..broker.unit.support.tables import counts
from .clients import behaviour
from .clients.client import Client
from .messages import EVERYTHING
from .model.model import PromiseBroken
from .plan import ClientPlan

_TURNS = 6000  # until a group is quiet; with retry_interval many messages are sent twice
_ROUNDS = 8
_ATTEMPTS = 10  # of a client to connect


def end(world):
    """Run from the last fault to an empty broker."""
    _calm(world)
    _converge(world)
    _check_retained(world)
    _check_nothing_is_left(world)
    found = counts(world.broker)
    if found != world.initial_counts:
        wrong = [name for name in found if found[name] != world.initial_counts[name]]
        raise PromiseBroken("left behind: " + ", ".join(sorted(wrong)))
    if broken(world.broker):
        raise PromiseBroken(broken(world.broker)[0])


def _calm(world):
    world.calm = True
    if world.storage:
        world.storage.calm()
        world.storage.fill(-1)
    world.listener.fails = 0
    world.calm_weather.one_packet = world.plan.one_packet
    for link in world.links:
        link.weather = world.calm_weather
        if link.client.link is not link and not link.disconnect_sent:
            link.break_off()
    world.turn(1)


def _turn(world, ms=20):
    for client in world.clients:
        behaviour.step_without_faults(client)
    world.turn(ms)


def _converge(world):
    """All messages arrive. As many clients are connected at a time as the broker allows."""
    for _ in range(_ROUNDS):
        for group in _groups(world):
            _connect_group(world, group)
            _wait_until_quiet(world, group)
            _check_arrived(world, group)
            if len(world.clients) > _connection_limit(world.broker):
                _disconnect_group(world, group)
        if not _is_waiting(world):
            return
    raise PromiseBroken("it does not converge")


def _connection_limit(broker):
    most = broker.settings.max_connections
    return most if most > 0 else broker.limits.connections


def _groups(world):
    most = _connection_limit(world.broker)
    clients = [client for client in world.clients if client.link]
    clients += [client for client in world.clients if not client.link]
    return [clients[at : at + most] for at in range(0, len(clients), most)]


def _connect_group(world, group):
    for client in world.clients:
        if client not in group and client.link:
            client.leave()
    for _ in range(_TURNS):
        _turn(world)
        for client in group:
            if client.link is None:
                _reconnect(world, client)
        if not [c for c in group if not c.accepted and _has_reason_to_connect(world, c)]:
            return
    raise PromiseBroken("clients cannot connect")


def _reconnect(world, client):
    client.pause -= 1
    if client.pause > 0 or not _has_reason_to_connect(world, client):
        return
    client.attempts += 1
    session = world.model.find_session(client.plan.name)
    # The broker's list of QoS 2 ids may be full of what the client has forgotten.
    client_forgot = session and session.client_forgot
    if client.attempts > _ATTEMPTS and (_may_be_refused(world) or client_forgot):
        client.in_flight = []  # it gives up these messages
        world.events["gave up"] += 1
    client.connect(False)


def _may_be_refused(world):
    """May other clients' sessions fill a table for ever?"""
    policies = world.plan.settings.when_full
    return policies["messages"] == "disconnect" or policies["sessions"] != "drop_oldest"


def _has_reason_to_connect(world, client):
    """Is anything owed to it? If not, a full table of sessions may refuse it for ever."""
    if client.link:
        return True
    return bool(world.model.find_session(client.plan.name) or client.in_flight)


def _wait_until_quiet(world, group):
    quiet = 0
    for _ in range(_TURNS):
        _turn(world)
        done = True
        for client in group:
            if client.link is None:
                done = not _has_reason_to_connect(world, client) and done
                _reconnect(world, client)
            elif not client.is_quiet() or client.link.session.queue:
                done = False
        quiet = quiet + 1 if done else 0
        if quiet > 15:
            return
    raise PromiseBroken(f"not quiet: {_activity(group)}")


def _activity(group):
    found = []
    for client in group:
        link = client.link
        session = link.session if link else None
        queue = session.queue if session else None
        due = link.pending_answers if link else None
        found.append((client.plan.name, client.accepted, client.in_flight, queue, due))
    return found


def _check_arrived(world, group):
    for client in group:
        session = client.link.session if client.link else None
        if session is None:
            continue
        for delivery in session.missing_deliveries():
            if not world.model.retained.has_expired(delivery.msg):
                raise PromiseBroken(f"{client.plan.name} never got {delivery!r}")
        world.model.retained.check_all_came(session)


def _disconnect_group(world, group):
    for client in group:
        if client.link:
            client.leave()
    for _ in range(4):
        _turn(world)


def _is_waiting(world):
    for session in world.model.sessions:
        if session.queue:
            return True
    return bool([client for client in world.clients if client.in_flight])


def _check_retained(world):
    """A new client must get the retained messages of the model."""
    model = world.model
    _disconnect_group(world, world.clients)
    for _ in range(40):
        _turn(world, 900)  # wills, expiry, lingering connections
    model.retained.check()
    plan = ClientPlan(world.seed, 15, world.plan)
    plan.name, plan.keep_alive, plan.wills, plan.packet_max = b"probe", 0, 0, 0
    probe = Client(world, plan)
    world.clients.append(probe)
    probe.connect(True)
    for _ in range(_TURNS):
        _turn(world)
        if probe.link is None:
            return  # a full table of sessions refuses it
        if probe.accepted:
            break
    probe.subscribe([(text, None, 2) for text in EVERYTHING])
    _wait_until_quiet(world, [probe])
    if probe.waiting:
        raise PromiseBroken("the probe is not answered")
    model.retained.check_all_came(probe.link.session)
    probe.leave()


def _check_nothing_is_left(world):
    """Each client clears what is retained, and ends its session."""
    for client in world.clients:
        if client.link:
            client.leave()
        for _ in range(3):
            client.connect(True)
            for _ in range(20):
                _turn(world)
                if client.link is None or client.accepted:
                    break
            if client.link and client.accepted:
                _clear(world, client)
                client.leave()
                break
            client.link = None
        _turn(world)
    for _ in range(20):
        _turn(world, 900)


def _clear(world, client):
    for topic in sorted(world.model.retained.messages):
        msg = client.message(0)
        msg.topic, msg.size, msg.retain, msg.qos, msg.expiry = topic, 0, 1, 0, None
        client.send_message(msg, 0, False)
        _turn(world)

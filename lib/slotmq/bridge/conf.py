# conf.py - the keys of mosquitto.conf that belong to the `connection NAME` above them. Loaded on
# demand by config/other_keys.py; owns nothing: Settings.connections has the Options. Allocates.
#
# A row of KEYS is an attribute of Options, its kind and the kind's bounds, as in
# config/mosquitto_conf.py; MORE has the other keys; `=` before a key: another name of it. Kinds
# that are not there are functions below.
from slotmq.config.mosquitto_conf import Reader, bare
from slotmq.constants import LINE
from slotmq.platform import ondemand

KEYS = """\
remote_clientid text
local_clientid text
remote_username text
remote_password text
local_username text
cleansession flag
local_cleansession flag
keepalive_interval number 0 65535
restart_timeout pauses
try_private flag
notifications flag
notifications_local_only flag
notification_topic text
bridge_bind_address text
bridge_protocol_version word mqttv311 mqttv31 mqttv50
bridge_attempt_unsubscribe flag
bridge_outgoing_retain flag
bridge_max_packet_size size 128 268435455
bridge_receive_maximum number 0 65535
bridge_session_expiry_interval number 0 4294967295
bridge_max_topic_alias number 0 65535
round_robin flag
bridge_cafile path
bridge_capath path
bridge_tls_use_os_certs flag
bridge_certfile path
bridge_keyfile path
bridge_insecure flag
bridge_alpn text
bridge_ciphers text
bridge_tls_version word tlsv1.2 tlsv1.3
bridge_psk text
bridge_identity text
start_type word automatic lazy once
idle_timeout number 1 65535
threshold number 1 65000
"""
MORE = """\
connection begin
addresses hosts
address = addresses
topic topics
clientid = remote_clientid
username = remote_username
password = remote_password
"""
_NO_TLS = "TLS needs a computer so far; let the bridge connect to a TLS proxy in its network"
_TOPIC = 'FILTER, perhaps out, in or both, a QoS, a prefix here and one there, unquoted ("": none)'
_PAUSES = ((1, 3600), (1, 7200), (0, 86400))  # bounds of restart_timeout: least, most, stable


def take(reader, key, value):
    """A line with such a key."""
    bridges = reader.settings.connections
    row = _row(key)
    if row[1] == "=":
        row = _row(row[2])
    if row[1] not in ("text", "path", "topics"):
        value = bare(value)
    if row[1] == "path" and not reader.is_foreign:
        _check_path(value)
    if row[0] in _options().TLS.split() and _is_of_board(reader):
        ondemand.take("config.other_keys", 0).refuse(reader, key, _NO_TLS)
    if key != "connection" and (not bridges or bridges[-1].at >> LINE != reader.at >> LINE):
        raise ValueError("a connection above it in this file")
    try:
        if key == "connection":
            bridges = _begin(reader, bridges, value)
        elif row[1] == "topics":
            bridges[-1].topics.append(_topic(reader, value))
        elif row[1] == "hosts":
            if bridges[-1].addresses:
                raise ValueError("one line with all addresses of a connection")
            bridges[-1].addresses = _value(reader, row, value)
        else:
            setattr(bridges[-1], row[0], _value(reader, row, value))
    except ValueError:
        reader.settings.connections[-1].is_wrong = True  # that is said once
        raise
    bridges[-1].lines.append((row[0], value))


def _value(reader, row, text):
    # What this text means for a row of KEYS or MORE
    kind = row[1]
    if kind == "hosts":
        return [_options().address_of(each) for each in reader.text((), text).split()]
    if kind == "pauses":
        return _pauses(reader, text)
    return getattr(reader, "text" if kind == "path" else kind)(row[2:], text)


def check_value(key, value):
    """ValueError: a program may not give that key this value: as text it means another one."""
    row = _row(key)
    reader = Reader(None, None)
    text = " ".join([str(each) for each in (value if isinstance(value, tuple) else (value,))])
    try:
        found = _value(reader, row, text.lower() if isinstance(value, bool) else text)
        if not isinstance(value, type(found)) or found != value:
            _value(reader, row, "")  # raises what was expected
    except ValueError as error:
        raise ValueError("%s: %s" % (key, error))


def check(reader):
    """What needs the whole file."""
    names = []
    for each in reader.settings.connections:
        if each.is_wrong:
            continue
        try:
            _options().check(each, reader.limits, reader.settings)
            remote = each.remote_clientid
            name = each.local_clientid or remote and "local." + remote
            if name and name in names:
                raise ValueError("a local_clientid that no earlier connection has")
            names.append(name)
            has_tls = _options().tls_keys(each)
            if has_tls and not reader.is_foreign and not _is_of_board(reader):
                _options().load(each)
        except ValueError as error:
            reader.fail(each.at, "connection", "%s, for %s" % (error, each.name))
    limits = reader.limits
    count = topics = 0
    for each in reader.settings.connections:
        count += 1
        topics += len(each.topics)
        for have, most, name in (
            (count, limits.bridges, "bridges"),
            (count, limits.connections, "connections"),
            (topics, limits.bridge_topics, "bridge_topics"),
        ):
            if have > most:
                reader.fail(each.at, "connection", "at most %d, see limit %s" % (most, name))


def _options():
    return ondemand.take("bridge.options", 0)


def _is_of_board(reader):
    return ondemand.take("config.tls_listeners", 0).is_of_board(reader)


def names():
    """All keys here."""
    return " ".join([line.split()[0] for line in (KEYS + MORE).split("\n")[:-1]])


def _row(key):
    for line in (KEYS + MORE).split("\n"):
        if line.startswith(key + " "):
            return line.split()
    raise KeyError(key)


def _check_path(value):
    if not ondemand.take("config.tls_listeners", 0).exists(value):
        raise ValueError("a file or folder that can be read")


def _begin(reader, bridges, value):
    value = value.split(None, 1)[0] if value else value  # as in mosquitto
    is_taken = value in [each.name for each in bridges]
    if not bridges:
        reader.settings.connections = bridges = []
    one = _options().options(value or "?")  # also if that is wrong: the lines below are its own
    one.at = reader.at
    one.lines = []
    one.place = reader.place(reader.at)
    bridges.append(one)
    reader.text((), value)
    if is_taken:
        raise ValueError("a name that no earlier connection has")
    return bridges


def _topic(reader, value):
    first = []
    if value[:1] == '"' and value[1:2] != '"' and value.find('"', 1) > 0:  # it may have blanks
        first = [value[1 : value.find('"', 1)]]
        value = value[value.find('"', 1) + 1 :]
    words = first + ["" if word == '""' else word for word in value.split()]
    ends = [n for n in range(1, len(words)) if words[n][:1] == "#"]
    words = words[: ends[0]] if ends else words  # without the comment
    if not 1 <= len(words) <= 5 or [word for word in words if word[:1] == '"']:
        raise ValueError(_TOPIC)
    if len(words) > 1:
        words[1] = words[1].lower()
    if len(words) > 2:
        words[2] = reader.number((0, 2), words[2])
    try:
        return _options().topic(*words)
    except ValueError as error:
        raise ValueError("%s: %s" % (error, _TOPIC))


def _pauses(reader, value):
    words = value.split()
    times = [reader.number(bounds, word) for word, bounds in zip(words, _PAUSES)]
    if not 1 <= len(words) <= 3 or times[:2] != sorted(times[:2]):
        raise ValueError("seconds, or the least and the most of them, and how long is stable")
    return tuple(times) if len(times) > 1 else times[0]

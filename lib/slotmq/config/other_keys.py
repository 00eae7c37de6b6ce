# other_keys.py - the keys of mosquitto.conf(5) that the broker does not serve, and other spellings
# of those that it serves. The served keys are in config/mosquitto_conf.py. Loaded on demand, for a
# line with such a key; owns nothing; allocates.
#
# A row of OTHERS is `status|keys|text`. For `alias` the text is the served key. `ignored`: the
# line is accepted and has no effect; the log warns. `refused`: the file is not used. The text of
# these two says why, and what to do instead. `plugin`: see config/plugins.py. `key=value`: with
# that value the line asks for what the broker does anyway, so it is accepted without a warning.
# `key_*`: each key that begins so. The keys of bridges are in bridge/conf.py.
from slotmq.config import policies
from slotmq.config.capacities import fields
from slotmq.config.mosquitto_conf import FIELDS, bare
from slotmq.constants import LINE, MOST_KEPT
from slotmq.platform import ondemand

OTHERS = """\
alias|maximum_qos|max_qos
alias|retained_persistence|persistence
alias|scram_file|password_file
ignored|user|the broker stays the user that started it
ignored|log_timestamp=true log_timestamp_format|each line of the log begins with seconds since 1970
ignored|connection_messages=true|without `log_type notice` nobody's connection is logged
ignored|autosave_on_changes=false|`autosave_interval` counts seconds; `persistence_sync always` \
writes each promise at once
ignored|packet_buffer_size websockets_headers_size|`limit rx_bytes` and `limit tx_bytes` are the \
sizes of buffers
ignored|websockets_log_level=0|`log_type` chooses the lines about WebSockets as well
ignored|mptcp=false|the listener accepts plain TCP, which such clients use too
ignored|check_retain_source|a retained message stays when its publisher loses the right to it
ignored|retain_expiry_interval|expired retained messages are removed at once
refused|tls_engine tls_engine_kpass_sha1 tls_keyform|a key is read from `keyfile` in PEM only
refused|disable_client_cert_date_checks=false|expired certificates of clients are always refused
refused|enable_proxy_protocol proxy_protocol_v2_require_tls=false|there is no PROXY protocol; \
let the proxy forward plain TCP
plugin|plugin plugin_load plugin_use global_plugin auth_plugin plugin_opt_* auth_opt_*|only \
`mosquitto_password_file.so` and `mosquitto_acl_file.so`, which are built in; hooks of a Python \
program do what others do
refused|auth_plugin_deny_special_chars=true|pattern rules never match for names with `+` or `#`
refused|mount_point|each topic would be rewritten in both directions; let the clients use topics \
with this prefix
refused|memory_limit=0|all tables are allocated at the start; lower a `limit`, see `slotmq budget`
refused|global_max_clients=-1|`limit sessions` is the number of clients, connected or not
refused|enable_control_api=false|there is no $CONTROL; `$SYS/#` shows the state
refused|local_password|`local_username` is what the bridge may do here; it does not log in
refused|bridge_reload_type=lazy|a restart takes over changes of bridges
refused|bridge_mptcp=false bridge_tcp_keepalive bridge_tcp_user_timeout|`keepalive_interval` \
finds a dead connection
refused|bridge_ciphers_tls1.3|the ciphers of TLS 1.3 are all good; `bridge_ciphers` is for TLS 1.2
refused|bridge_require_ocsp=false|Python cannot ask for OCSP
"""


def rows():
    """status, keys, text of each row; the last one has those of bridges."""
    for line in OTHERS.split("\n")[:-1]:
        yield line.split("|")
    yield "bridge", ondemand.take("bridge.conf", 0).names(), "of the `connection` above it"


def take(reader, key, value):
    """A line with a key that the Reader does not know."""
    status, text = find(key, value)
    place = reader.place(reader.at)
    if status is None:
        known = [row[0] for row in policies.rows(FIELDS)] + names()
        raise ValueError("a key of slotmq or mosquitto" + suggestion(key, known))
    if status == "alias":
        reader.set(text, value)
    elif status == "plugin":
        ondemand.take("config.plugins", 0).take(reader, key, value, text)
    elif status == "bridge":
        ondemand.take("bridge.conf", 0).take(reader, key, value)
    elif status == "refused":
        refuse(reader, key, text)
    elif status and (not ondemand.IS_SMALL or len(reader.warnings) < MOST_KEPT):
        reader.warnings.append("%s: %s has no effect: %s" % (place, key, text))


def refuse(reader, key, text):
    """Note an error; the reason is said once."""
    for at, before in reader.failures:
        if before.endswith(": not served: " + text) and at >> LINE == reader.at >> LINE:
            text = "as line %d" % (at & (1 << LINE) - 1)
            break
    reader.report(reader.at, "%s: %s: not served: %s" % (reader.place(reader.at), key, text))


def no_limit(name):
    """What was expected instead of a limit of that name."""
    known = [row[0] for row in fields()]
    return "the name of a capacity; unknown limit " + name + suggestion(name, known)


def find(key, value):
    """-> status and text of a key that the broker does not serve; "", "": its value says what the
    broker does anyway; None, None: there is no such key."""
    for status, names, text in rows():
        for name in names.split():
            name, _, same = name.partition("=")
            if name == key or name[-1] == "*" and key.startswith(name[:-1]):
                value = bare(value)
                is_same = same and same in (value, {"0": "false", "1": "true"}.get(value))
                return ("", "") if is_same else (status, text)
    return None, None


def suggestion(name, known):
    """`; did you mean NAME?` if one of the known names is alike, or ""."""
    try:
        from difflib import get_close_matches
    except ImportError:  # on MicroPython
        return ""
    near = get_close_matches(name, known, 1)
    return "; did you mean %s?" % near[0] if near else ""


def names():
    """Every key here, without the `key_*`."""
    found = [name.split("=")[0] for _, keys, _ in rows() for name in keys.split()]
    return [name for name in found if name[-1] != "*"]

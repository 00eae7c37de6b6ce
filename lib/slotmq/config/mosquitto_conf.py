# mosquitto_conf.py - reads a file in mosquitto.conf's syntax into Settings and Limits.
#
# A line is empty, a comment (it begins with #), or a key, blanks and its value. If a key occurs
# twice, the last line counts, as in mosquitto; listener, limit, when_full, record, log_type and
# log_dest accumulate. FIELDS has a row for each key: the key, whether a reload can change it
# (live) or only a start, its kind, and the kind's bounds. A kind is a method of _Reader: it
# returns the setting, or raises ValueError with the text of what it expected. FIELDS is a text,
# because names in a dict would outlive the module on MicroPython.
#
# load() reads the file into a _Reader line by line (take, set), then resize() makes the Limits and
# finish() checks what needs the whole file. Loaded at the start and for a reload; owns nothing;
# allocates.
from slotmq.config.capacities import fields
from slotmq.config.policies import WHEN_FULL, connack, rows, sized
from slotmq.config.settings import ConfError, Settings
from slotmq.platform import log
from slotmq.platform.runtime import const

_ERROR = const(1)
_WARNING = const(2)
_NOTICE = const(4)

FIELDS = """\
listener start listener
port start port
bind_address start address
max_connections start most
pid_file start text
persistence start flag
persistence_location start text
persistence_file start text
persistence_sync start word always interval
autosave_interval start number 0 100000000
limit start limit
qos2_delivery start word receive release
record start prefix 65535
record_location start text
record_segment_size start number 1024 16776960
record_budget start number 2048 1073741823
record_full start word drop_oldest stop
record_flush_interval start number 1 3600
record_events start flag
remote_admin start flag
allow_anonymous live flag
allow_zero_length_clientid live flag
auto_id_prefix live prefix 15
mqtt31_client_id_max live size 1 65535
max_keepalive live number 0 65535
connect_timeout live number 1 65535
packet_timeout live number 1 65535
max_packet_size live size 20 268435460
message_size_limit live size 1 268435455
max_qos live number 0 2
retain_available live flag
max_inflight_messages live size 1 268435455
max_queued_messages live size 1 268435455
max_session_share live number 1 100
max_offline_share live number 1 100
queue_qos0_messages live flag
upgrade_outgoing_qos live flag
allow_duplicate_messages start flag
mqtt_versions start version
max_topic_alias live number 0 65535
max_topic_alias_broker live number 0 65535
persistent_client_expiration live number 0 50000000
response_information live text
server_reference live text
acl_file start text
scram_file start text
retry_interval live number 0 65535
set_tcp_nodelay live flag
sys_interval live number 0 65535
log_type live types error warning notice information subscribe unsubscribe debug
log_dest live dest
when_full live policy
"""

_UNKNOWN = "a key of slotmq (include_dir, passwords, TLS, plugins, bridges: not yet)"


def load(path, limits):
    """-> Settings, Limits, and line numbers: {key: line; (host, port): (key, line)}."""
    reader = _Reader(path, limits)
    reader.read()
    reader.resize()
    return reader.finish(), reader.limits, reader.lines


def reload_app(program):
    """Read an App's configuration again, and log what has changed."""
    try:
        done, refused = reload(program.conf, program.limits, program.settings)
        program.open_log()
    except (ConfError, OSError) as error:
        log.write(_ERROR, "Not reloaded: %s" % error)
        return
    program.broker.apply_settings()
    log.write(_NOTICE, "Reloaded %s; changed: %s." % (program.conf, ", ".join(done) or "nothing"))
    if refused:
        log.write(_WARNING, "Only a restart changes: %s." % ", ".join(refused))


def reload(path, limits, settings):
    """Change in `settings` what can change while running; if ConfError is raised, nothing.

    -> the keys that changed, and the keys that only a restart can change."""
    reader = _Reader(path, limits)
    reader.read()
    new = reader.finish()
    changed = []
    refused = ["limit"] if reader.resizes() else []
    if new.listeners != settings.listeners:
        refused.append("listener")
    for row in rows(FIELDS):
        key = row[0]
        value = getattr(new, key, None)
        if value != getattr(settings, key, None):
            if row[1] == "live":
                setattr(settings, key, value)
                changed.append(key)
            else:
                refused.append(key)
    return changed, refused


class _Reader:
    def __init__(self, path, limits):
        self.path = path
        self.limits = limits
        self.sizes = {}  # the values of the `limit` lines
        self.settings = Settings()
        self.line = 0  # number of the line that is being read
        self.lines = {}  # key or name of a limit: its last line; for listeners see load()
        # Listeners: [host, port, max_connections, line of max_connections]. The first is
        # mosquitto's default listener, which `port` and `bind_address` set.
        self.sections = [[None, 0, 0, 0]]

    def read(self):
        try:
            with open(self.path, "rb") as file:
                for line in file:
                    self.line += 1
                    self.take(line)
        except OSError as error:
            raise ConfError("%s: expected a file that can be read (%s)" % (self.path, error))

    def take(self, line):
        words = ("line", "")
        try:
            words = line.decode().strip().split(None, 1)
            if words and words[0][0] != "#":
                self.set(words[0], "".join(words[1:]))
        except UnicodeError:
            self.fail(self.line, words[0], "UTF-8")
        except ValueError as error:
            self.fail(self.line, words[0], error)

    def set(self, key, value):
        for row in rows(FIELDS):
            if row[0] == key:
                break
        else:
            raise ValueError(_UNKNOWN)
        found = getattr(self, row[2])(row[3:], value)
        if key == "record":
            found = getattr(self.settings, key, ()) + (found,)
        self.lines[key] = self.line
        if found is not None:
            setattr(self.settings, key, found)

    def fail(self, number, key, expected):
        raise ConfError("%s:%d: %s: expected %s" % (self.path, number, key, expected))

    def resize(self):
        try:
            self.limits = self.limits.replaced(self.sizes)
        except ValueError as error:
            # The text names the limits that contradict; the file sets at least one of them.
            named = [word for word in str(error).replace(":", "").split() if word in self.sizes]
            self.fail(self.lines[named[0]], "limit", error)

    def resizes(self):
        return any(self.sizes[name] != getattr(self.limits, name) for name in self.sizes)

    def finish(self):
        """What needs the whole file: the listeners, and checks of sizes against limits."""
        settings = self.settings
        host, port, most, line = self.sections.pop(0)
        if host or port:
            port = port or 1883
            key = "bind_address" if host else "port"
            self.lines[host, port] = key, self.lines[key]
            self.sections.append([host, port, most, line])
        else:
            settings.max_connections = most
            self.lines["max_connections"] = line
        for host, port, most, line in self.sections:
            self.fits(line, "max_connections", most, "connections")
            settings.listeners.append((host, port, most))
        # With a listener configured, anonymous clients need an explicit yes, as in mosquitto 2.
        if "allow_anonymous" not in self.lines:
            settings.allow_anonymous = not settings.listeners
        for key, limit in sized():
            self.fits(self.lines.get(key), key, getattr(settings, key), limit)
        key, wrong = connack(settings, self.limits)
        if wrong:
            if key not in self.lines:
                key, self.lines[key] = "limit", self.lines.get("tx_bytes", 0)
            self.fail(self.lines[key], key, wrong)
        return settings

    def fits(self, line, key, value, limit):
        size = getattr(self.limits, limit)
        if value > size:
            self.fail(line, key, "at most %d, see limit %s" % (size, limit))

    # The kinds: (bounds, text of the value) -> the setting; None if the method has stored it.

    def word(self, bounds, value):
        if value not in bounds:
            raise ValueError(" or ".join(bounds))
        return value

    def version(self, bounds, value):
        return int(self.word(("3", "5"), value))

    def flag(self, bounds, value):
        return self.word(("true", "false"), value) == "true"

    def number(self, bounds, value):
        low, high = bounds
        digits = value and not value.strip("0123456789")  # int() takes 1_000 too
        if digits and int(low) <= int(value) <= int(high):
            return int(value)
        raise ValueError("a number from %s to %s" % (low, high))

    def size(self, bounds, value):
        return 0 if value in ("0", "unlimited") else self.number(bounds, value)

    def text(self, bounds, value):
        if not value:
            raise ValueError("a value")
        return value

    def prefix(self, bounds, value):
        found = value.encode()
        if not 0 < len(found) <= int(bounds[0]):
            raise ValueError("1 to %s bytes" % bounds[0])
        return found

    def types(self, bounds, value):
        chosen = self.word(bounds + ["all", "none"], value)
        if chosen == "none":
            return 0
        before = self.settings.log_type if "log_type" in self.lines else 0
        return 127 if chosen == "all" else before | 1 << bounds.index(chosen)

    def dest(self, bounds, value):
        if value == "none":
            return ()
        if value[:5] != "file ":
            self.word(("stdout", "stderr", "none", "file PATH"), value)
        else:
            try:
                open(value[5:].strip(), "a").close()
            except OSError as error:
                raise ValueError("a file that can be written (%s)" % error)
        return (self.settings.log_dest if "log_dest" in self.lines else ()) + (value,)

    def policy(self, bounds, value):
        for row in rows(WHEN_FULL):
            if value.split() in [[row[0], policy] for policy in row[1:]]:
                self.settings.when_full[row[0]] = value.split()[1]
                return
        raise ValueError("a table and its policy: " + WHEN_FULL[:-1].replace("\n", "; "))

    def limit(self, bounds, value):
        words = value.split()
        if len(words) != 2:
            raise ValueError("the name of a limit and a number")
        for name, _, least, most in fields():
            if name == words[0]:
                self.sizes[name] = self.number((least, most), words[1])
                self.lines[name] = self.line
                return
        raise ValueError("the name of a capacity; unknown limit " + words[0])

    def listener(self, bounds, value):
        words = value.split()
        if not 1 <= len(words) <= 2:
            raise ValueError("a port and perhaps an address")
        section = [words[1] if len(words) == 2 else None, self.number((1, 65535), words[0])]
        if section in [before[:2] for before in self.sections]:
            raise ValueError("a port that no earlier line has")
        self.sections.append(section + [0, 0])
        self.lines[tuple(section)] = "listener", self.line

    def port(self, bounds, value):
        self.sections[0][1] = self.number((1, 65535), value)

    def address(self, bounds, value):
        self.sections[0][0] = self.text(bounds, value)

    def most(self, bounds, value):
        unlimited = value in ("-1", "unlimited")
        self.sections[-1][2] = 0 if unlimited else self.number((0, 65535), value)
        self.sections[-1][3] = self.line

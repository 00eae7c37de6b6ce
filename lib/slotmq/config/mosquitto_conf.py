# mosquitto_conf.py - reads a file in mosquitto.conf's syntax into Settings and Limits.
#
# A line is empty, a comment (it begins with #), or a key, blanks and its value; behind a value
# that is no text may stand a comment, too. As in mosquitto, a text or a file has one value, or
# one for each listener; a second one is an error. Of other keys the last line counts; listener,
# limit, when_full, record, log_type and log_dest accumulate. FIELDS has a row for each key that
# is served: the key, whether a reload can change it (live) or only a start, its kind, and the
# kind's bounds. A kind is a method of Reader, or a function of config/rare_kinds.py or, with _ at
# its end, of config/tls_listeners.py. It returns the setting, or raises ValueError with the text
# of what it expected. FIELDS is a text, because names in a dict would outlive the module on
# MicroPython. All other keys of mosquitto are in config/other_keys.py; a reload is in
# config/reload.py.
#
# load() reads the file into a Reader line by line (take, set), then finish() makes the Limits and
# checks what needs the whole file. An error is noted and reading goes on, so that one ConfError
# has all of them, a line for each. `at` is a line's place: the number of its file in the upper
# bits, that of the line in the lower 20. (Functions are methods only where other files call them,
# and have names that the broker has anyway: each name more stays in a board's heap.) Loaded at the
# start and for a reload; owns nothing; allocates.
from slotmq.config.capacities import fields
from slotmq.config.policies import connack, sized
from slotmq.config.settings import ConfError, Settings
from slotmq.constants import LINE, MOST_KEPT, PLACES
from slotmq.platform import ondemand
from slotmq.platform.runtime import MICROPYTHON

OF_BOARD = 2  # a value of Reader.is_foreign
_COMPUTER = 1 << 20  # max_packet of a computer: more costs nothing until it is used

FIELDS = """\
listener start listener
port start port
bind_address start address
max_connections live most
global_max_connections live total
bind_interface start device
socket_domain start word ipv4 ipv6
accept_protocol_versions live levels
protocol start protocol_ mqtt websockets
websockets_origin live origins_
http_dir live files_
certfile live file_
keyfile live file_
cafile live file_
capath live folder_
crlfile live file_
dhparamfile live file_
require_certificate live flag_
use_identity_as_username live flag_
use_subject_as_username live flag_
tls_version live word_ tlsv1.2 tlsv1.3
ciphers live text_
ciphers_tls1.3 live text_
psk_file live file_
psk_hint live text_
pid_file start text
persistence start flag
persistence_location start text
persistence_file start text
persistence_sync start word always interval
autosave_interval start size 1 100000000
limit start limit
include_dir start folder
qos2_delivery start word receive release
record start prefix 65535
record_location start text
record_segment_size start number 1024 16776960
record_budget start number 2048 1073741823
record_full start word drop_oldest stop
record_flush_interval start number 1 3600
record_events start flag
remote_admin start flag
per_listener_settings start scope
allow_anonymous live flag
listener_allow_anonymous live flag
allow_zero_length_clientid live flag
allow_control_characters live flag
password_file start text
login_delay_max live number 0 60
use_username_as_clientid live flag
clientid_prefixes live prefix 65535
auto_id_prefix live prefix 15
listener_auto_id_prefix live prefix 15
mqtt31_client_id_max live size 1 65535
max_keepalive live number 0 65535
connect_timeout live number 1 65535
packet_timeout live number 1 65535
max_packet_size live size 20 268435460
message_size_limit live size 1 268435455
max_qos live number 0 2
retain_available live flag
max_inflight_messages live size 1 268435455
max_inflight_bytes live size 1 1000000000
max_queued_messages live size 1 268435455
max_queued_bytes live size 1 1000000000
max_session_share live number 1 100
max_offline_share live number 1 100
queue_qos0_messages live flag
upgrade_outgoing_qos live flag
allow_duplicate_messages start flag
mqtt_versions start version
max_topic_alias live number 0 65535
max_topic_alias_broker live number 0 65535
persistent_client_expiration live time 0 50000000
response_information live text
server_reference live text
acl_file start rules
retry_interval live number 0 65535
set_tcp_nodelay live flag
sys_interval live number 0 65535
log_type live types error warning notice information subscribe unsubscribe debug
log_dest live dest
log_facility live number 0 7
when_full live policy
"""

# Settings that a listener may have of its own. The first five are for listeners only, and those in
# SCOPED with per_listener_settings.
_OF_LISTENER = (
    "bind_interface socket_domain accept_protocol_versions listener_allow_anonymous"
    " listener_auto_id_prefix max_qos max_topic_alias max_topic_alias_broker"
    " use_username_as_clientid"
)
_ONCE = "text text_ file_ folder_"  # kinds of keys that have one value
_WHOLE = _ONCE + " folder files_ prefix rules device dest origins_"  # kinds that may have a #
SCOPED = "allow_anonymous password_file acl_file auto_id_prefix allow_zero_length_clientid"


def load(path, limits, is_public=False):
    """-> Settings, Limits, the place of each line that the start may find wrong, as FILE:LINE
    ({key: place; (host, port): (key, place)}), and warnings. is_public: see Reader."""
    reader = Reader(path, limits)
    reader.is_public = is_public
    reader.open(path)
    settings = reader.finish()
    places = {}
    for key in reader.lines:
        at = reader.lines[key]
        if isinstance(key, tuple):
            places[key] = at[0], reader.place(at[1])
        elif key not in reader.sizes and "live" not in _row(key):
            places[key] = reader.place(at)
    return settings, reader.limits, places, reader.warnings


class Reader:
    """Reads one configuration. is_foreign: it is another machine's, so that no file that it names
    is opened; OF_BOARD: that is a board. is_public: the command line adds a listener that is not
    on loopback."""

    is_public = False

    def __init__(self, path, limits, is_foreign=False):
        self.names = [path]  # of the files; the others are those of include_dir
        self.limits = limits
        self.is_foreign = is_foreign
        self.sizes = {}  # the values of the `limit` lines
        self.settings = Settings()
        self.at = 0  # place of the line that is being read
        self.key = None  # and its key
        self.failures = []  # (place, text)
        self.count = 0  # of all failures, also of those that are not kept
        self.warnings = []
        self.plugins = None  # see config/plugins.py
        self.of_all = 0, 0  # global_max_connections and its place
        self.lines = {}  # key or name of a limit: place of its last line; for listeners see load()
        # Listeners: [host, port, max_connections, place of max_connections, other settings]. The
        # first is mosquitto's default listener, which `port` and `bind_address` set.
        self.sections = [[None, 0, 0, 0, {}]]
        self._section = self.sections[0]  # that of the line

    def open(self, path):
        """Read a file."""
        try:
            with open(path, "rb") as file:
                self.read(file)
        except OSError as error:
            self.report(self.at, "%s: expected a file that can be read (%s)" % (path, error))

    def read(self, lines):
        for line in lines:
            self.at += 1
            if self.at & (1 << LINE) - 1 == 1 and line[:3] == b"\xef\xbb\xbf":
                line = line[3:]  # of an editor: it says that this is UTF-8
            self.take(line)

    def take(self, line):
        words = ("line", "")
        try:
            words = line.decode().strip().split(None, 1)
            if words and words[0][0] != "#":
                self.set(words[0], "".join(words[1:]))
        except UnicodeError:
            self.fail(self.at, words[0], "UTF-8")
        except ValueError as error:
            self.fail(self.at, words[0], error)

    def set(self, key, value):
        row = _row(key)
        if row is None:
            ondemand.take("config.other_keys", 0).take(self, key, value)
            return
        self.key = key
        if row[2] not in _WHOLE.split():
            value = bare(value)
        kind = getattr(self, row[2], None)
        found = kind(row[3:], value) if kind else self.rare(row[2], row[3:], value)
        if key == "record":
            found = getattr(self.settings, key, ()) + (found,)
        keys = _OF_LISTENER.split()
        keys = keys[:5] if self._section is self.sections[0] else keys
        is_own = key in keys or row[2][-1] == "_" or key in SCOPED.split() and _is_scoped(self)
        if row[2] in _ONCE.split():
            before = self._section[4].get(key) if is_own else getattr(self.settings, key, None)
            if key in self.lines and before not in (None, found):
                text = "one value; there is another at "
                raise ValueError(text + self.place(self.lines[key]))
        self.lines[key] = self.at
        if is_own:
            self._section[4][key] = found
            return
        if found is not None:
            setattr(self.settings, key, found)

    def rare(self, kind, bounds, value):
        if kind[-1] == "_":
            return getattr(ondemand.take("config.tls_listeners", 0), kind)(self, bounds, value)
        return getattr(ondemand.take("config.rare_kinds", 0), kind)(self, bounds, value)

    def fail(self, at, key, expected):
        self.report(at, "%s: %s: expected %s" % (self.place(at), key, expected))

    def report(self, at, text):
        """Note an error."""
        self.count += 1
        if not ondemand.IS_SMALL or self.count <= MOST_KEPT:
            self.failures.append((at, text))

    def place(self, at):
        """FILE:LINE"""
        return "%s:%d" % (self.names[at >> LINE], at & (1 << LINE) - 1)

    def finish(self, resizes=True):
        """Check what needs the whole file; -> Settings, or a ConfError with all errors.

        resizes=False: the limits stay, since the tables are made."""
        if resizes:
            _resize(self)
        if self.plugins:
            ondemand.take("config.plugins", 0).check(self)
        _add_listeners(self)
        if self.settings.connections:
            ondemand.take("bridge.conf", 0).check(self)
        # A wrong `limit` line would make sizes wrong that may be right.
        if not any(": limit: " in text for _, text in self.failures):
            _check_sizes(self)
        if any([each[3].get("http_dir") for each in self.settings.listeners]):
            ondemand.take("config.tls_listeners", 0).warn_of_files(self)
        if 0 < self.of_all[0] < (self.settings.max_connections or 65536):
            self.settings.max_connections = self.of_all[0]
        if self.count:
            texts = [text for _, text in sorted(self.failures)]
            if self.count > len(texts):
                texts.append("%d more errors" % (self.count - len(texts)))
            raise ConfError("\n".join(texts))
        return self.settings

    # The kinds: (bounds, text of the value) -> the setting; None if the method has stored it.

    def word(self, bounds, value):
        if value not in bounds:
            raise ValueError(" or ".join(bounds))
        return value

    def version(self, bounds, value):
        return int(self.word(("3", "5"), value))

    def flag(self, bounds, value):
        # 1 and 0 as in mosquitto
        return value == "1" or value != "0" and self.word(("true", "false"), value) == "true"

    def number(self, bounds, value):
        low, high = bounds
        digits = value and not value.strip("0123456789")  # int() takes 1_000 too
        if digits and int(low) <= int(value) <= int(high):
            return int(value)
        raise ValueError("a number from %s to %s" % (low, high))

    def size(self, bounds, value):
        is_below = value[:1] == "-" and value[1:].isdigit()
        return 0 if is_below or value in ("0", "unlimited") else self.number(bounds, value)

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
        before = self.settings.log_type if "log_type" in self.lines else 0
        if value in ("websockets", "internal"):
            return before  # only mosquitto has such lines
        chosen = self.word(bounds + ["all", "none"], value)
        if chosen == "none":
            return 0
        return 127 if chosen == "all" else before | 1 << bounds.index(chosen)

    def limit(self, bounds, value):
        words = value.split()
        if len(words) != 2:
            raise ValueError("the name of a limit and a number")
        for name, _, least, most in fields():
            if name == words[0]:
                self.sizes[name] = self.number((least, most), words[1])
                self.lines[name] = self.at
                return
        raise ValueError(ondemand.take("config.other_keys", 0).no_limit(words[0]))

    def listener(self, bounds, value):
        self._section = [None, 0, 0, 0, {}]  # also of the lines below a wrong one
        words = value.split()
        if not 1 <= len(words) <= 2:
            raise ValueError("a port and perhaps an address")
        host = words[1] if len(words) == 2 else None
        if words[0] == "0" and host:
            section = [ondemand.take("config.rare_kinds", 0).path(self, None, host), 0]
        else:
            section = [host, self.number((1, 65535), words[0])]
        if section in [before[:2] for before in self.sections]:
            raise ValueError("a port that no earlier line has")
        self._section[:2] = section
        self.sections.append(self._section)
        self.lines[tuple(section)] = "listener", self.at

    def port(self, bounds, value):
        self.sections[0][1] = self.number((1, 65535), value)

    def address(self, bounds, value):
        self.sections[0][0] = self.text(bounds, value)

    def most(self, bounds, value):
        self._section[2] = self.size((0, 65535), value)
        self._section[3] = self.at


def bare(value):
    """The value without the comment behind it."""
    return (" " + value.replace("\t", " ")).partition(" #")[0].strip()


def _row(key):
    # Of FIELDS, or None. All rows as lists would take 9 KB for a moment.
    at = FIELDS.find("\n%s " % key) + 1
    if at or FIELDS.startswith(key + " "):
        return FIELDS[at : FIELDS.find("\n", at)].split()
    return None


def _is_scoped(reader):
    return getattr(reader.settings, "per_listener_settings", False)


def _resize(reader):
    sizes = reader.sizes
    largest = max(reader.settings.max_packet_size, reader.settings.message_size_limit)
    if "max_packet" not in sizes and largest > reader.limits.max_packet >= _COMPUTER:
        sizes["max_packet"] = largest
        if MICROPYTHON:  # its heap has a size, and each buffer counts
            sizes["reassembly"] = sizes.get("reassembly", 1)
    try:
        reader.limits = reader.limits.replaced(sizes)
    except ValueError as error:
        # The text names the limits that contradict; the file sets at least one of them.
        named = [word for word in str(error).replace(":", "").split() if word in reader.sizes]
        reader.fail(reader.lines[named[0]], "limit", error)


def _add_listeners(reader):
    settings = reader.settings
    lines = reader.lines
    host, port, most, at, options = reader.sections.pop(0)
    if host or port:
        port = port or 1883
        key = "bind_address" if host else "port"
        lines[host, port] = key, lines[key]
        reader.sections.append([host, port, most, at, options])
    else:
        for key in options:
            if key in lines:
                reader.fail(lines[key], key, "a listener above it")
        if at:
            settings.max_connections = most
            lines["max_connections"] = at
    for host, port, most, _, options in reader.sections:
        before = host, port
        if PLACES in options:
            reader.rare("listener_", None, options)
        domain = options.get("socket_domain")
        if domain and not host:
            host = "0.0.0.0" if domain == "ipv4" else "::"
            lines[host, port] = lines[before]
        elif domain and (":" in host) != (domain == "ipv6"):
            reader.fail(lines["socket_domain"], "socket_domain", "an address of %s" % domain)
        for key in [key for key in options if key[:9] == "listener_"]:
            options[key[9:]] = options.pop(key)
        settings.listeners.append((host, port, most, options))
    if _is_scoped(reader):
        reader.rare("files", None, settings)
    # With a listener configured, anonymous clients need an explicit yes, as in mosquitto 2.
    if "allow_anonymous" not in lines or _is_scoped(reader):
        settings.allow_anonymous = not settings.listeners and not reader.is_public


def _check_sizes(reader):
    for _, _, most, at, _ in reader.sections:
        _check_size(reader, at, "max_connections", most, "connections")
    most, at = reader.of_all
    _check_size(reader, at, "global_max_connections", most, "connections")
    settings = reader.settings
    for key, limit in sized():
        _check_size(reader, reader.lines.get(key), key, getattr(settings, key), limit)
    key, wrong = connack(settings, reader.limits)
    if wrong:
        if key not in reader.lines:
            key, reader.lines[key] = "limit", reader.lines.get("tx_bytes", 0)
        reader.fail(reader.lines[key], key, wrong)


def _check_size(reader, at, key, value, limit):
    size = getattr(reader.limits, limit)
    if value > size:
        reader.fail(at, key, "at most %d, see limit %s" % (size, limit))

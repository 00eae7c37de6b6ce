"""Chooses the names in the packed files.

Attributes and methods share one map for the whole package, since the source does not tell an
object's class. Top-level definitions have another map, so a short name can serve in both. These
keep their names: what the package exports, dunder names, attributes of Python's own objects, and
names that the program looks up by a string. Such strings stand in the lookups themselves, or in
the calls and tables that are declared here; any other string is only text.
"""

import array
import ast
import builtins
import gc
import io
import itertools
import keyword
import re
import select
import socket
import sys
import time
from collections.abc import Iterable, Iterator

from .program import (
    APP,
    CORE,
    FIVE,
    FUNCTION,
    INIT,
    NATIVE,
    Module,
    OurModule,
    Own,
    Program,
)

# Python's own objects, whose attributes keep their names; and names that only MicroPython has
_OBJECTS = (
    *(str, bytes, bytearray, list, dict, tuple, int, set, float, property, BaseException, OSError),
    *(array.array, socket.socket, io.BytesIO, io.FileIO, io.TextIOWrapper),
    *(builtins, gc, select, socket, sys, time),
)
_MICROPYTHON = """\
alloc_emergency_exception_buf const heap_lock heap_unlock implementation ipoll mem_alloc
mem_free micropython modify native print_exception ptr ptr16 ptr32 ptr8 readinto register
threshold ticks_add ticks_diff ticks_ms uint unregister viper
"""
# Attributes that these objects have on CPython only, and that are names of the package
_CPYTHON_ONLY = "_accept callbacks closed writable"
# Names that every MicroPython has in its flash (py/makeqstrdata.py, static_qstr_list, and the
# modules of all ports). As short names they take no heap; one that a port lacks takes as much as
# any other name.
_IN_FLASH = """\
append args bytecode clear close copy count endswith extend find format from_bytes get index
insert isalpha isdigit islower isspace isupper items join key keys little lower lstrip pop
popitem read readline remove replace rfind rindex rsplit rstrip send sep setdefault sort split
start startswith step stop strip throw to_bytes update upper value values write acos acosh asin
asinh atan atan2 atanh ceil copysign cos cosh degrees erf erfc exp expm1 fabs floor fmod frexp
gamma isclose isfinite isinf isnan ldexp lgamma log10 log2 modf radians sin sinh sqrt tan tanh
trunc calcsize pack pack_into unpack unpack_from dump dumps loads a2b_base64 b2a_base64 crc32
hexlify unhexlify digest sha256 heapify heappop heappush choice getrandbits randint randrange
seed uniform compile group match search sub addressof bytearray_at bytes_at sizeof cancel coro
ph_key gmtime localtime mktime sleep sleep_ms sleep_us ticks_add ticks_cpu ticks_us time_ns deque
namedtuple popleft appendleft phase polar rect chdir getcwd ilistdir listdir mkdir rmdir rename
statvfs unlink mount umount uname urandom seek tell byteorder exc_info isenabled disable enable
threshold blit ellipse fill fill_rect hline line pixel poly scroll vline recvfrom sendall sendto
settimeout makefile mem16 mem32 mem8 idle wrap_socket readlines partition rpartition center
splitlines symmetric_difference issubset issuperset isdisjoint difference intersection union
discard intersection_update difference_update real imag fromkeys viper native opt_level stack_use
qstr_info mem_info kbd_intr schedule enumerate reversed slice frozenset complex AF_INET AF_INET6
SOCK_DGRAM SOCK_RAW POLLIN POLLOUT POLLERR POLLHUP Task TaskQueue OrderedDict DeflateIO GZIP RAW
ZLIB AUTO FrameBuffer MONO_HLSB ARRAY BIG_ENDIAN BF_LEN BF_POS BFINT8 BFINT16 BFINT32 BFUINT8
BFUINT16 BFUINT32 FLOAT32 FLOAT64 INT INT8 INT16 INT32 INT64 LITTLE_ENDIAN LONG LONGLONG NATIVE
PTR SHORT UINT UINT8 UINT16 UINT32 UINT64 ULONG ULONGLONG USHORT VOID EACCES EAGAIN EALREADY
EBADF ECONNABORTED ECONNREFUSED ECONNRESET EEXIST EHOSTUNREACH EINPROGRESS EINVAL EIO EISDIR
ENOBUFS ENODEV ENOENT ENOMEM ENOTCONN EOPNOTSUPP EPERM ETIMEDOUT errorcode GS2_HMSB GS4_HMSB GS8
MONO_HMSB MONO_VLSB MVLSB RGB565 CERT_NONE CERT_REQUIRED SSLContext pi e inf nan tau pend_throw
cur_task peek push ioctl readblocks writeblocks lookahead progsize mtime readsize server_side
server_hostname do_handshake_on_connect getpeercert cipher load_cert_chain load_verify_locations
set_ciphers verify_mode get_ciphers PROTOCOL_TLS_CLIENT PROTOCOL_TLS_SERVER getvalue IOBase Signal
VfsFat VfsLfs2 mkfs readonly default reverse time_pulse_us sha1 invert off
ArithmeticError AssertionError AttributeError EOFError GeneratorExit ImportError IndentationError
IndexError KeyError LookupError NameError NotImplementedError RuntimeError StopIteration
SyntaxError SystemExit ZeroDivisionError abs all any bin callable chr dir divmod eval exec getattr
globals hasattr hash hex id isinstance issubclass iter locals map max min next oct ord pow range
repr round sum super type zip
generator closure function object module bound_method iterator dict_view NoneType NotImplemented
Ellipsis StopAsyncIteration UnicodeError KeyboardInterrupt bool float classmethod staticmethod
uctypes framebuf deflate vfs cmath math heapq json random struct machine
"""
# Attributes of a Broker that surrounding programs and their hooks use
_PUBLIC = "hooks limits log log_mask loop settings watch"
# What programs use of a Bridge
_OF_BRIDGE = "losses refusals text"
# Methods of a Broker that its __getattr__ finds
_FOUND = "bridge client close compact serve subscribe"
# Methods of a Broker that no program calls
_INTERNAL = "caught drain resume resume_scans"
# Classes that are not exported, but whose objects are given to programs
_GIVEN = ("Client",)
# Methods that take the place of one of an exported class: programs pass arguments by name
STANDS_IN = ("publish_own",)
# Methods of an object that replaces scram.Scram
_AUTHENTICATION = "auth forget user"
_ALWAYS = (NATIVE, CORE, APP, FIVE)  # files that are always loaded
# Files that only some configurations load; their names are chosen last
_ON_REQUEST = (
    *("journal", "record", "writer", "compaction", "restore", "segments", "in_process"),
    *("acl", "session_owners", "senders", "recheck", "denials", "filters"),
    *("users", "login", "scram", "tls", "certificate"),
    *("bridge_options", "bridges", "bridge_configuration", "bridge_start", "bridge_mqtt5"),
    *("bridge_tls", "bridge_prefixes", "bridge_probing", "log_of_bridges"),
    *("frames", "websocket", "http"),
    *("expired_slots", "log_outgoing", "large_messages", "lower_limits", "refusing_bound", "said"),
    *("log_defects", "log_packets", "secure_websocket", "x509"),
)
_EXPORTS = "__all__"
_WORD = re.compile(r"[A-Za-z_]\w*")
# Calls that look up a name, which is their second argument, or the first one of __dict__.get
_LOOKUPS = ("getattr", "setattr", "hasattr", "delattr")
_IN_DICT = "__dict__.get"
# Functions that look up names from variables, and where these names come from: variables of the
# module or, with a dot, of another one; "f()": strings among the first two arguments of f's calls.
# "": names of Python's own objects, or of modules.
SOURCES = {
    "app.obey": "_ORDERS",
    "app.start._forget_what_made_it": "_MADE",
    "bridge.conf.take": "KEYS",
    "bridge.conf._value": "KEYS config.mosquitto_conf.FIELDS",
    "bridge.link.shift": "_TIMES",
    "bridge.options.options": "bridge.conf.KEYS",
    "bridge.options.check": "_OF_5",
    "bridge.options._check_names": "_TEXTS _IN_CONNECT",
    "bridge.options.tls_keys": "TLS",
    "config.capacities.fill": "FIELDS",
    "config.capacities.values": "FIELDS",
    "config.capacities._at_least": "FIELDS",
    "config.mosquitto_conf.set": "FIELDS",
    "config.mosquitto_conf.rare": "FIELDS rare()",
    "config.mosquitto_conf._check_size": "config.policies._TABLE_OF",
    "config.mosquitto_conf._check_sizes": "config.policies._TABLE_OF",
    "config.plugins._option": "config.mosquitto_conf.FIELDS",
    "config.policies.check": "_TABLE_OF",
    "config.reload.reload": "config.mosquitto_conf.FIELDS config.capacities.FIELDS",
    "config.policies.fill": "_OF_OTHERS config.mosquitto_conf.FIELDS",
    "journal.restore_rows.must_fit": "config.capacities.FIELDS",
    "journal.start._setting": "DEFAULTS",
    "app.log_dests.open_all": "",
    "platform.ondemand.borrow": "borrow()",
    "platform.ondemand.forget": "",
    "platform.ondemand.log_event": "log_event()",
    "protocol.connect.read_payload": "_PAYLOAD",
    "recorder.interceptor.record_event": "record_event()",
    "recorder.segments.look": "_TABLES",
    "recorder.start._setting": "DEFAULTS",
    "status.log_full_tables.log": "_TABLES",
    "status.sys_topics._value": "TOPICS SLOTS JOURNAL",
}
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Names:
    """attributes, definitions: the new name of each; arguments(): those of a function."""

    def __init__(self, program: Program) -> None:
        for function, line in dynamic_lookups(program).items():
            if function not in SOURCES:
                raise ValueError(f"{function}, line {line}: declare the names in {__name__}")
        self._texts = set(_texts(program))  # the names that are looked up
        self.keywords = {
            each.arg
            for node in _nodes(program)
            if isinstance(node, ast.Call)
            for each in node.keywords
            if each.arg
        }
        self.exported = {*_exported(program), *_GIVEN}
        self._used = {*_used(program), *self._texts}
        theirs = {name for each in _OBJECTS for name in dir(each)} - set(_CPYTHON_ONLY.split())
        flash = set(_IN_FLASH.split())
        kept = theirs | self._texts
        kept |= set(f"{_MICROPYTHON} {_PUBLIC} {_FOUND} {_OF_BRIDGE} {_AUTHENTICATION}".split())
        methods = set(_methods_of(program, self.exported)) - set(_INTERNAL.split())
        kept |= {name for name in methods if name[0] != "_" or name[:2] == "__"}
        # a module that is loaded on demand is used as an object
        kept |= {
            m.name
            for name in program.modules
            for m in _own(program, name)
            if self.is_known(program, m)
        }
        found = sorted(set(_attributes(program)))
        # The names that take no heap go first to what files that are always loaded give or use,
        # and last to what only files that are loaded on request do.
        ranked = [[f for f in program.files if _rank(f) <= rank] for rank in (0, 1)]
        sooner = [{*_attributes(program, files), *_used(program, files)} for files in ranked]
        found.sort(key=lambda name: sum(name not in names for names in sooner))
        self.attributes = dict(
            zip(
                [name for name in found if name not in kept | flash and name[:2] != "__"],
                _short(kept - flash | set(found)),
                strict=False,
            )
        )
        self.definitions = self._definitions(program)

    def arguments(self, args: ast.arguments, bound: set[str]) -> dict[str, str]:
        """Short names for a function's arguments, except those that some call passes by keyword.

        `bound`: the other names that the function binds."""
        names = [each.arg for each in args.args]
        taken = self.keywords | bound | set(names)
        short = (letter for letter in _LETTERS if letter not in taken)
        return dict(
            zip([name for name in names if name not in self.keywords], short, strict=False)
        )

    def is_known(self, program: Program, meaning: Own) -> bool:
        """Whether the definition must keep its name, since it may be looked up by it.

        In app these are all public ones. In another module that is loaded on demand these are
        the names that any module uses as an attribute of an object, which may be the module."""
        if meaning.name[:2] == "__" or meaning.name in self.exported:
            return True
        if program.file_of(meaning.module) != program.flat(meaning.module):
            return False
        return meaning.name[0] != "_" and (meaning.module == APP or meaning.name in self._used)

    def _definitions(self, program: Program) -> dict[Own, str]:
        own = {
            file: [m for name in modules for m in _own(program, name)]
            for file, modules in program.files.items()
        }
        called = {m: m.name for each in own.values() for m in each if self.is_known(program, m)}
        read = {node.id for node in _nodes(program) if isinstance(node, ast.Name)}
        never = set(_local(program)) | read | self._texts | set(called.values())
        never |= set(_LETTERS)  # arguments get these
        shared = [m for m in _shared(program) if m not in called]
        for rank in range(3):
            files = [file for file in own if _rank(file) == rank]
            first = [m for m in shared if program.file_of(m.module) in files]
            called |= dict(zip(first, _short(never), strict=False))
            never |= set(called.values())
            for file in files:
                # Names that only this file uses may be used again in other files.
                rest = [m for m in own[file] if m not in called]
                called |= dict(zip(rest, _short(never), strict=False))
            never |= set(called.values())
        return called


def _rank(file: str) -> int:
    return 0 if file in _ALWAYS else 2 if file.startswith(_ON_REQUEST) else 1


def _own(program: Program, module: str) -> list[Own]:
    means = program.modules[module].means.values()
    return [each for each in means if isinstance(each, Own) and each.module == module]


def _shared(program: Program) -> list[Own]:
    """Definitions of one file that another file imports."""
    found: dict[Own, None] = {}
    for name, module in program.modules.items():
        file = program.file_of(name)
        inner = [node for line in module.body for node in ast.walk(line)]
        imported = [meaning for node in inner for _, meaning in program.imported(node)]
        for each in [*module.means.values(), *imported]:
            if isinstance(each, Own) and program.file_of(each.module) != file:
                found[each] = None
            elif isinstance(each, OurModule) and program.file_of(each.name) != file:
                found.update(dict.fromkeys(_own(program, each.name)))
    return list(found)


def _short(taken: set[str]) -> Iterator[str]:
    flash = _IN_FLASH.split()
    yield from (word for word in flash if word not in taken)
    for length in (2, 3):
        for letters in itertools.product(_LETTERS, repeat=length):
            name = "".join(letters)
            if name not in taken and name not in flash and not keyword.iskeyword(name):
                yield name


def _nodes(program: Program, files: Iterable[str] = ()) -> Iterator[ast.AST]:
    """All syntax nodes, or those of some files."""
    names = [name for file in files or program.files for name in program.files.get(file, ())]
    for name in names:
        for statement in program.modules["" if name == INIT else name].body:
            yield from ast.walk(statement)


def _texts(program: Program) -> Iterator[str]:
    """The words in the strings of the declared tables and calls, and in lookups."""
    sources = [
        (function.rpartition(".")[0], source)
        for function, declared in SOURCES.items()
        for source in declared.split()
    ]
    tables = {(module, source) for module, source in sources if "." not in source}
    functions = tuple(source[:-2] for _, source in sources if source.endswith("()"))
    for name, module in program.modules.items():
        for node in ast.walk(ast.Module(module.body, [])):
            if isinstance(node, ast.Assign) and (name, ast.unparse(node.targets[0])) in tables:
                yield from _words(node.value)
            elif isinstance(node, ast.Call) and is_call_of((*_LOOKUPS, *functions), node):
                for given in filter(_is_literal, node.args[:2]):
                    if not _names_module(program, given):
                        yield from _words(given)
            elif isinstance(node, ast.Call) and is_call_of((_IN_DICT,), node):
                yield from _words(node.args[0])


def dynamic_lookups(program: Program) -> dict[str, int]:
    """The functions that look up a name from a variable ("app.obey"), and the line of the last
    lookup."""
    return {
        f"{name}.{function}": node.lineno
        for name, module in program.modules.items()
        for function, node in _calls(ast.Module(module.body, []), "")
        if (looked_up := _looked_up(node)) and not _is_literal(looked_up)
    }


def _calls(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    """Each call, and the name of the function around it."""
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.Call):
            yield function, inner
        yield from _calls(inner, inner.name if isinstance(inner, FUNCTION) else function)


def _looked_up(node: ast.Call) -> ast.expr | None:
    if is_call_of(_LOOKUPS, node):
        return node.args[1]
    return node.args[0] if is_call_of((_IN_DICT,), node) else None


def _is_literal(node: ast.expr) -> bool:
    """A string, or one of two: "on" if x else "off"."""
    if isinstance(node, ast.IfExp):
        return _is_literal(node.body) and _is_literal(node.orelse)
    return isinstance(node, ast.Constant)


def is_call_of(functions: tuple[str, ...], node: ast.Call) -> bool:
    """Whether it calls a function or method with one of these names."""
    return f".{ast.unparse(node.func)}".endswith(tuple(f".{each}" for each in functions))


def _words(within: ast.AST) -> Iterator[str]:
    for node in ast.walk(within):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _WORD.findall(node.value)


def _names_module(program: Program, node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in program.modules


def _attributes(program: Program, files: Iterable[str] = ()) -> Iterator[str]:
    """The attributes that classes and assignments give to objects of the package."""
    for node in _nodes(program, files):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.ClassDef):
            yield from in_class(node)


def _used(program: Program, files: Iterable[str] = ()) -> Iterator[str]:
    """The attributes that are used of anything but an imported module of the package."""
    modules = [name for file in files for name in program.files[file]] or program.modules
    for name in modules:
        module = program.modules["" if name == INIT else name]
        for line in module.body:
            for node in ast.walk(line):
                if isinstance(node, ast.Attribute) and not _is_module(module, node.value):
                    yield node.attr


def _is_module(module: Module, value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and isinstance(module.means.get(value.id), OurModule)


def in_class(node: ast.ClassDef) -> Iterator[str]:
    """The names that the class's own statements bind."""
    for statement in node.body:
        if isinstance(statement, FUNCTION):
            yield statement.name
        elif isinstance(statement, ast.Assign):
            yield from (t.id for t in statement.targets if isinstance(t, ast.Name))


def _local(program: Program) -> Iterator[str]:
    """Every name that is bound in a function, or that an import binds."""
    for node in _nodes(program):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield node.asname or node.name


def _exported(program: Program) -> Iterable[str]:
    for statement in program.modules[""].body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == _EXPORTS:
            return [str(name) for name in ast.literal_eval(statement.value)]
    return []


def _methods_of(program: Program, classes: set[str]) -> Iterator[str]:
    for node in _nodes(program):
        if isinstance(node, ast.ClassDef) and node.name in classes:
            yield from in_class(node)

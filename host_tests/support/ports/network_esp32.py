# network_esp32.py - `network` and `esp32` of the esp32 port, and its heap. Written from
# network_wlan.c, network_common.c, modesp32.c and gccollect.c of ports/esp32 in MicroPython 1.25
# and 1.26, and py/gc.c with MICROPY_GC_SPLIT_HEAP_AUTO.
#
# Unlike on a board, each connect() is one attempt (IDF tries again after a failure), and each
# region of IDF's heap is one free block, without fragmentation.
import network_base
from network_base import AIR

_NO_ADDRESS = ("0.0.0.0",) * 4
_OF_DHCP = ("192.168.1.7", "255.255.255.0", "192.168.1.1", "192.168.1.1")
_NO_AP_FOUND, _WRONG_PASSWORD, _ASSOC_FAIL, _HANDSHAKE_TIMEOUT = 201, 202, 203, 204
_IDLE, _CONNECTING, _GOT_IP = 1000, 1001, 1010
_OF_AP = ["ssid", "essid", "hidden", "security", "authmode", "key", "password", "max_clients"]
_OF_BOTH = ["mac", "channel", "hostname", "dhcp_hostname", "txpower", "protocol", "pm"]
_GET = [name for name in _OF_BOTH + _OF_AP if name not in ("key", "password")]
_GET.extend(("ifname", "reconnects"))
# Bytes that esp_wifi_init() and esp_wifi_start() take, in pieces. Both are estimates: IDF's
# documents say some 50 KB in all.
_INIT, _START = 35200, 8000
_FRAME = 1600  # a dynamic buffer, for each packet
_MARGIN = 2048  # that gc_try_add_heap() adds to what it is asked for
# Free regions beside MicroPython's first area, as an ESP32 printed them (micropython/micropython,
# pull request 12952)
FREE = (3344, 4344, 14656, 112968)


class Idf:
    """The system's memory: regions of one free block each. Also the module `esp32`."""

    HEAP_DATA, HEAP_EXEC = 4, 1  # MALLOC_CAP_8BIT, MALLOC_CAP_EXEC

    def __init__(self, *free):
        self.free = list(free)
        self.least = sum(free)

    def largest(self):
        return max(self.free)

    def take(self, size):
        """heap_caps_malloc(): take a block, if there is one."""
        fitting = [each for each in self.free if each >= size]
        if not fitting:
            return False
        self.free[self.free.index(min(fitting))] -= size
        self.least = min(self.least, sum(self.free))
        return True

    def give(self, size):
        self.free[0] += size

    def idf_heap_info(self, cap):
        assert cap == self.HEAP_DATA
        return [(each + 1000, each, each, each) for each in self.free]


def _tables(size):
    # gc_setup_area(): 3 bits for each block of 16 bytes, and the area's own record
    return size * 3 // 131 + 64


class Gc:
    """MicroPython's heap, in areas that it takes from the system. Also the module `gc`."""

    def __init__(self, idf, first):
        self.idf = idf
        self.areas = []  # size, free
        self._add(first)

    def _add(self, size):
        assert self.idf.take(size)
        self.areas.append([size, size - _tables(size)])

    def collect(self):
        pass

    def mem_alloc(self):
        return sum([size - _tables(size) - free for size, free in self.areas])

    def mem_free(self):
        """modgc.c: the largest free block of the system counts, too."""
        return sum([free for _, free in self.areas]) + self.idf.largest()

    def alloc(self, size):
        """Allocate, and grow the heap if needed. MemoryError: the system has no such block."""
        for area in self.areas:
            if area[1] >= size:
                area[1] -= size
                return
        needed = size + max(_MARGIN, size * 13 // 512)
        there = self.idf.largest()
        if there < needed:
            raise MemoryError("memory allocation failed")
        grows = min(there, max(sum([area[0] for area in self.areas]), needed))
        self._add(grows)
        self.areas[-1][1] -= size


class WLAN(network_base.Interface):
    SEC_OPEN, SEC_WEP, SEC_WPA, SEC_WPA2, SEC_WPA_WPA2 = 0, 1, 2, 3, 4
    SEC_WPA3, SEC_WPA2_WPA3 = 6, 7
    PM_NONE, PM_PERFORMANCE, PM_POWERSAVE = 0, 1, 2

    @classmethod
    def check(cls, which):
        if not cls.module.is_initialized:  # esp_initialise_wifi()
            cls.module.needs(_INIT)
            cls.module.is_initialized = True
        if which not in (0, 1):
            raise ValueError("invalid WLAN interface identifier")

    def begin(self, which):
        super().begin(which)
        self.settings = {"ssid": "ESP_123456", "security": 0, "max_clients": 4}
        self.addresses = ("192.168.4.1",) * 4 if which else _NO_ADDRESS
        self.dhcp = not which
        self.is_trying = False

    def active(self, on=None):
        if on is None:
            return self.is_active
        if on and not self.module.is_started:
            self.module.needs(_START)
            self.module.is_started = True
        self.is_active = bool(on)
        if on and self.which:
            self.names.append(self.settings["ssid"])
        if self.module.is_started and not any(each.is_active for each in self.made.values()):
            self.module.is_started = False
            self.module.idf.give(_START)
        return self.is_active

    def connect(self, ssid=None, key=None, *args, **named):
        if args or any(name != "bssid" for name in named):
            raise TypeError("extra keyword arguments given")
        if not self.module.is_started:
            raise OSError("Wifi Not Started")
        if self.is_trying and self.status() == _CONNECTING:
            raise OSError("Wifi Internal State Error")
        self.hostname = self.module.hostname()  # of the station alone
        AIR.attempts += 1
        self.wanted = ssid, key or ""
        self.is_trying = True
        self.since = AIR.now

    def disconnect(self):
        self.wanted = None
        self.is_trying = False
        if not self.module.is_started:
            raise OSError("Wifi Not Started")

    def status(self, what=None):
        if what is not None:
            if what not in ("rssi", "stations"):
                raise ValueError("unknown status param")
            if (what == "stations") != (self.which == self.IF_AP):
                raise OSError("AP required" if what == "stations" else "STA required")
            return -50 if what == "rssi" else [(b"\0" * 6,)] * AIR.joined
        if self.which:
            return None
        if self.wanted is None:
            return _IDLE
        around = AIR.look()
        ssid, key = self.wanted
        if ssid not in around.points:
            return _NO_AP_FOUND
        if around.points[ssid] != key:
            return _WRONG_PASSWORD
        if around.now - self.since < (around.dhcp_ms if self.dhcp else 1):
            return _CONNECTING
        if self.dhcp:
            self.addresses = _OF_DHCP
        return _GOT_IP

    def isconnected(self):
        return AIR.joined > 0 if self.which else self.status() == _GOT_IP

    def send(self, frames):
        """Let the driver buffer so many packets."""
        if not all(self.module.idf.take(_FRAME) for _ in range(frames)):
            raise OSError(105)  # ENOBUFS

    def ifconfig(self, given=None):
        if given is None:
            self.status()
            return self.addresses
        if given == "dhcp":
            if self.which:
                raise ValueError("invalid arguments")
            self.dhcp = True
            return None
        self.addresses = network_base.parse(given)
        self.dhcp = False
        return None

    def config(self, *names, **settings):
        if names and settings:
            raise TypeError("either pos or kw args are allowed")
        if not settings:
            if len(names) != 1:
                raise TypeError("can query only one param")
            if names[0] not in _GET:
                raise ValueError("unknown config param")
            return self.module.pm if names[0] == "pm" else self.settings.get(names[0])
        for name in settings:
            if name not in _OF_AP + _OF_BOTH + ["reconnects"]:
                raise ValueError("unknown config param")
            if name in _OF_AP and not self.which:
                raise OSError("AP required")
            if name == "reconnects" and self.which:
                raise OSError("STA required")
            if name == "pm":
                self.module.pm = settings["pm"]
            else:
                self.settings[name] = settings[name]
        # esp_wifi_set_config() at its end
        if not self.is_active:
            raise OSError("Wifi Invalid Mode")
        if self.is_trying and self.status() == _CONNECTING:
            raise OSError("Wifi Internal State Error")
        if self.which:
            self.names.append(self.settings["ssid"])
        return None


class Network(network_base.Module):
    STAT_IDLE, STAT_CONNECTING, STAT_GOT_IP = _IDLE, _CONNECTING, _GOT_IP
    STAT_NO_AP_FOUND, STAT_WRONG_PASSWORD = _NO_AP_FOUND, _WRONG_PASSWORD
    STAT_ASSOC_FAIL = STAT_CONNECT_FAIL = _ASSOC_FAIL
    STAT_HANDSHAKE_TIMEOUT = _HANDSHAKE_TIMEOUT

    def __init__(self, version=(1, 25), idf=None):
        super().__init__()
        self.version = version
        self.idf = idf or Idf(*FREE)
        self.is_initialized = self.is_started = False
        self.pm = WLAN.PM_PERFORMANCE  # IDF's default, WIFI_PS_MIN_MODEM
        WLAN.module = self
        WLAN.made.clear()
        self.WLAN = WLAN

    def needs(self, size):
        """esp_exceptions_helper() with ESP_ERR_NO_MEM."""
        if not all(self.idf.take(_FRAME) for _ in range(size // _FRAME)):
            if self.version >= (1, 26):
                raise OSError("WiFi Out of Memory")
            raise RuntimeError("Wifi Unknown Error 0x0101")

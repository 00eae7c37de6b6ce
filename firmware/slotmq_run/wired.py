# wired.py - Ethernet, and PPP on a UART.
from slotmq_run import network_link


def make(kind, config):
    """The link that network.json describes."""
    return (Ethernet if kind == "ethernet" else Serial)(config)


class Ethernet(network_link.Link):
    """A W5500 on SPI, by default with the pins of WIZnet's board. Without its INT pin the port
    polls it every 64 ms."""

    name = "ethernet"

    def __init__(self, config):
        super().__init__(config)
        from machine import SPI, Pin

        pins = config.get("pins", {})
        interrupt = config.get("int_pin", None if pins else 21)
        spi = SPI(
            config.get("spi", 0),
            config.get("baudrate", 20000000),
            mosi=Pin(pins.get("mosi", 19)),
            miso=Pin(pins.get("miso", 16)),
            sck=Pin(pins.get("sck", 18)),
        )
        wires = [Pin(pins.get("cs", 17)), Pin(pins.get("reset", 20))]
        if interrupt is not None:
            wires.append(Pin(interrupt))
        self.nic = network_link.made_by("WIZNET5K")(spi, *wires)

    def interface(self):
        return self.nic

    def begin(self):
        self.nic.active(True)  # starts DHCP without blocking, unlike ifconfig("dhcp")
        if self.fixed:
            self.nic.ifconfig(self.fixed)


class Serial(network_link.Link):
    """PPP on a UART: a modem, or the emulated board."""

    name = "ppp"

    def __init__(self, config):
        super().__init__(config)
        from machine import UART, Pin

        pins = config.get("pins", {})
        uart = UART(
            config.get("uart", 1),
            baudrate=config.get("baudrate", 921600),
            tx=Pin(pins.get("tx", 4)),
            rx=Pin(pins.get("rx", 5)),
            rxbuf=4096,
            txbuf=4096,
            timeout=0,
        )
        self.nic = network_link.made_by("PPP")(uart)

    def interface(self):
        return self.nic

    def begin(self):
        self.nic.connect()

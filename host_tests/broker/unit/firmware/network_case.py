# network_case.py - the firmware's link on the fake network of a port, and the log of its states.
import unittest

from board_case import AIR, use

HOME = {"link": "station", "ssid": "home", "password": "secret"}
STEP_MS = 200


class NetworkCase(unittest.TestCase):
    def start(self, port, config=HOME, **facts):
        self.network_link, self.watch, self.network, self.machine = use(port, **facts)
        self.link = self.network_link.make(config)
        self.log = []

    def join(self, port, config=HOME, password="secret", **facts):
        """The link starts, and there is an access point with this password."""
        self.start(port, config, **facts)
        AIR.points["home"] = password
        self.link.start(0)

    def run_for(self, seconds):
        for _ in range(seconds * 1000 // STEP_MS):
            AIR.now += STEP_MS
            if self.link.step(AIR.now):
                self.log.append(self.link.state())

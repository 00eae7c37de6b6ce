"""The model of test_model.py with time: messages expire, and delayed wills are published."""

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test

from ..wire.scene import spec
from .model import SHORT
from .players import LONG
from .test_model import PROPERTIES, QOS, SETTINGS, TOPICS, Events

SHORTLY = st.just({"message_expiry": SHORT})
WAITS = 2  # in an example
# No shrinking: each attempt would wait again.
BRIEFLY = settings(SETTINGS, max_examples=5, phases=[Phase.reuse, Phase.generate])


class Timed(Events):
    """As Events; some messages and delays end meanwhile."""

    lives = PROPERTIES | SHORTLY
    delays = (0, SHORT, SHORT, LONG)

    def __init__(self, broker, send):
        super().__init__(broker, send)
        self.waits = WAITS

    @invariant()
    def in_time(self):
        self.keep_time()

    @precondition(lambda self: self.waits)
    @rule(data=st.data(), topics=st.lists(TOPICS | st.just("s/1"), min_size=1, max_size=3))
    def wait(self, data, topics):
        """Ada is away; what eve publishes meanwhile has expired when she is back."""
        self.waits -= 1
        for name in sorted({"ada", "eve"} - {*self.clients}):
            self.connect(data, name, False, True, False, 0)
        self.who = "ada"
        self.drop(data)
        self.who, self.lives = "eve", SHORTLY
        for topic in topics:
            self.publish(data, topic, b"meanwhile", data.draw(QOS), data.draw(st.booleans()), 0)
        self.who, self.lives = "", Timed.lives
        self.pass_time()
        self.look()


@pytest.mark.waits
@pytest.mark.ours("mosquitto takes the first of overlapping filters, and drops some wills")
@spec(new="3.3.2-5 3.1.3-9 3.1.2-8")
def test_each_client_gets_what_has_not_expired(broker, send):
    machine = lambda: Timed(broker, send)  # noqa: E731
    run_state_machine_as_test(machine, settings=BRIEFLY)  # type: ignore[arg-type]

"""The plugin in pytest: marks, options, reports on a failure, xdist."""

import subprocess
import sys

import pytest

from slotmq_tools.testing.mqtt import Mqtt

USES = """
def test_it(mqtt):
    mqtt.publish("a", "1")
    assert mqtt.wait_for("a").payload == b"1"
"""


def marked(arguments: str) -> str:
    return f"import pytest\n\n@pytest.mark.mqtt({arguments})\ndef test_it(mqtt):\n    pass\n"


def test_nothing_is_imported_before_a_fixture_is_used(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import sys

        def test_without():
            assert not [name for name in sys.modules if name.split(".")[0] == "slotmq"]
            assert not {"slotmq_tools.boards", "slotmq_tools.testing.mqtt"} & set(sys.modules)
    """)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_a_broker_does_without_the_slow_imports() -> None:
    """Half of the first start was asyncio, which only wait_for_async() needs."""
    code = (
        "import sys; from slotmq_tools.testing.mqtt import Mqtt; Mqtt().close(); "
        "print({'asyncio', 'hmac'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "set()\n"


def test_a_failed_test_has_packets_and_log_in_its_report(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_it(mqtt):
            mqtt.broker.call(mqtt.broker.client, "panel")
            mqtt.wait_for("lamp", timeout=0)
    """)
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*no message lamp within 0 s", "*last packets:", "*broker of mqtt*", "log:", "*'panel'*"]
    )


def test_a_passed_test_has_none(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(USES)
    result = pytester.runpytest_inprocess("-rA")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*broker of mqtt*")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("tls=1", "tls: expected True or False, not 1"),
        ("tls=True, runtime='micropython'", "tls: not with runtime="),
        ("version=4", "version: expected 3 (for 3.1 and 3.1.1) or 5, not 4"),
        ("board='PICO'", "board: expected one of ESP32_GENERIC"),
        ("runtime='pypy'", "runtime: expected cpython or micropython, not 'pypy'"),
        ("konf=''", "konf: expected one of conf, users"),
        ("conf='max_qos 1\\nmax_qoss 2'", "slotmq.conf:2: max_qoss"),
        ("conf='listener 1883\\nlistener 1884'", "expected at most one listener"),
        ("limits={'sessions': 0}", "limits: 'sessions': expected a number from 1"),
        ("limits={'sesions': 9}", "@pytest.mark.mqtt: limits: 'sesions': expected the name"),
        (
            "conf='max_qos 1\\n', limits={'retained': 9, 'sessions': 2}",
            "limits: 'sessions': expected sessions: at least 64, the value of connections",
        ),
        ("conf='limit sessions 2'", "slotmq.conf:1: limit: expected sessions: at least"),
        ("limits=[9]", "limits: expected {name: number}"),
        ("conf=5", "conf: expected a str"),
        ("users={'a:b': 'x'}", "users: 'a:b': a name must not contain :"),
        ("users={'ada': ''}", "users: 'ada': the password is empty"),
        ("users={'ada': 5}", "users: expected {name: password}, both str"),
        ("conf='acl_file /nowhere'", "conf: /nowhere: expected a file that can be read"),
        ("conf='password_file /nowhere'", "conf: Errno 2 No such file"),
        (
            "conf='persistence true\\npersistence_location /nowhere'",
            "conf: Settings: persistence: expected a folder that is there",
        ),
        ("conf='record \\x23'", "conf: record: expected none"),
        ("'max_qos 1'", "expected keyword arguments only"),
    ],
)
def test_a_wrong_mark_is_one_clear_line(
    pytester: pytest.Pytester, arguments: str, said: str
) -> None:
    pytester.makepyfile(marked(arguments))
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    assert said in result.stdout.str().replace("[", "").replace("]", "")
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*another exception*")


def test_a_failure_shows_the_test_only_and_each_packet_once(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CI", "BUILD_NUMBER"):  # there pytest's summary repeats the whole failure
        monkeypatch.delenv(name, raising=False)
    pytester.makepyfile("""
        def test_it(mqtt):
            for n in range(13):
                mqtt.publish("n", f"<{n}>")
            mqtt.wait_for("lamp", timeout=0)
    """)
    said = pytester.runpytest_inprocess().stdout.str()
    assert [said.count(f"<{n}>") for n in range(13)] == [1] * 13
    assert "packets before these:\n    the test -> PUBLISH n <0>\nlog:" in said
    assert "mqtt.py" not in said and "server.py" not in said


def test_a_broker_that_has_failed_is_reported_once(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_it(mqtt):
            mqtt.broker.subscribe("bad", lambda *_: 1 / 0)
            mqtt.publish("bad")
            mqtt.wait_for("lamp", timeout=100)
    """)
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    assert result.stdout.str().count("broker of mqtt") == 1


def test_keys_that_only_the_program_serves_do_no_harm() -> None:
    for line in ("per_listener_settings true", "remote_admin true", "log_dest topic"):
        with Mqtt(conf=line) as mqtt:
            mqtt.publish("a")


def test_marks_of_module_class_and_test_are_joined(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        pytestmark = pytest.mark.mqtt(conf="max_qos 1", version=3)

        @pytest.mark.mqtt(limits={"sessions": 9, "connections": 3})
        class TestIt:
            @pytest.mark.mqtt(conf="max_qos 0")
            def test_it(self, mqtt):
                assert mqtt.broker.settings.max_qos == 0
                assert mqtt.broker.limits.sessions == 9
                assert mqtt.broker.five is None
    """)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_the_board_of_the_command_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        def test_it(mqtt, mqtt_session):
            assert mqtt.broker.limits.connections == 4
            assert mqtt_session.broker.limits.connections == 4

        @pytest.mark.mqtt(board="ESP32_GENERIC")
        def test_its_own(mqtt):
            assert mqtt.broker.limits.connections == 7
    """)
    result = pytester.runpytest_inprocess("--mqtt-board", "RPI_PICO_W")
    result.assert_outcomes(passed=2)


def test_an_unknown_board_of_the_command_line(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("--mqtt-board", "PICO")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--mqtt-board PICO: expected one of ESP32_GENERIC*"])


def test_the_session_has_one_broker(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_first(mqtt_session):
            mqtt_session.publish("a", "1")

        def test_second(mqtt_session, mqtt):
            assert mqtt_session.messages("a") and not mqtt.messages("a")
            assert mqtt_session.port != mqtt.port
    """)
    pytester.runpytest_inprocess().assert_outcomes(passed=2)


def test_with_xdist(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.parametrize("n", range(20))
        def test_it(mqtt, mqtt_session, n):
            mqtt.publish("n", str(n))
            assert [int(one.payload) for one in mqtt.messages("n")] == [n]
    """)
    pytester.runpytest_subprocess("-n", "2").assert_outcomes(passed=20)


def test_on_micropython(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        "import unittest\nimport pytest\n"
        + USES
        + """
    assert "MicroPython" in mqtt.log[0] and "RPI_PICO_W" in mqtt.log[0]
    for topic, payload, qos in (("a/#", "1", 0), ("a", None, 0), ("a", "1", 3)):
        try:
            mqtt.publish(topic, payload, qos)
        except (TypeError, ValueError):
            pass
        else:
            assert False
    for n in range(20):
        mqtt.publish("twice", str(n), 2)
    mqtt.wait_for("twice", "19")
    assert len(mqtt.messages("twice")) == 20

def test_faults(mqtt):
    mqtt.power_cut()

@pytest.mark.mqtt(tls=True)
def test_tls(mqtt):
    pass

def test_the_inside(mqtt):
    mqtt.broker.limits

@pytest.fixture
def bad_network(mqtt):
    mqtt.drop("a")

def test_a_fixture(bad_network):
    assert False

class TestOfUnittest(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def take(self, mqtt):
        self.mqtt = mqtt

    def test_faults(self):
        self.mqtt.power_cut()
"""
    )
    result = pytester.runpytest_subprocess(
        "-rs", "--mqtt-board", "RPI_PICO_W", "--mqtt-runtime", "micropython", "-W", "error"
    )
    result.assert_outcomes(passed=1, skipped=5)
    result.stdout.fnmatch_lines(['*SKIPPED*power_cut(): not with runtime="micropython"'])


def test_what_is_not_possible_is_an_error_where_the_test_asks_for_it(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(marked("runtime='micropython'").replace("pass", "mqtt.power_cut()"))
    pytester.runpytest_inprocess().assert_outcomes(failed=1)


def test_a_wrong_configuration_on_micropython_names_the_line(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(marked("conf='max_qos 3', runtime='micropython'"))
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*slotmq.conf:1: max_qos: expected a number from 0 to 2*"])


LEAKS = """
import gc, os, threading, tracemalloc
from slotmq_tools.testing.mqtt import Mqtt

def one():
    with Mqtt() as mqtt:
        mqtt.publish("a", "b", 1, True)

def state():
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    return len(os.listdir("/proc/self/fd")), threading.active_count(), size

tracemalloc.start()
for _ in range(10):
    one()
files, threads, size = state()
for _ in range(1000):
    one()
files2, threads2, size2 = state()
print(files2 - files, threads2 - threads, size2 - size < 1 << 20, size2 - size)
"""


def test_a_thousand_brokers_leave_nothing() -> None:
    """No descriptor, no thread, less than a megabyte."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LEAKS], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[:3] == ["0", "0", "True"], done.stdout
    assert done.stderr == ""

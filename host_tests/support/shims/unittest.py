# unittest.py - as much of CPython's unittest as the unit tests use, for MicroPython.
#
# pytest runs the files in host_tests/broker/unit on CPython, with the real module. On 32-bit
# MicroPython there is none, and this file is on MICROPYPATH. A method that is missing here is
# an error there, never a silent pass.
#
# ruff: noqa: N802
import gc
import sys


class TestCase:
    def setUp(self):
        pass

    def tearDown(self):
        pass

    def fail(self, msg=None):
        raise AssertionError(msg or "failed")

    def assertTrue(self, found, msg=None):
        self._hold(found, f"{found!r} is not true", msg)

    def assertFalse(self, found, msg=None):
        self._hold(not found, f"{found!r} is not false", msg)

    def assertEqual(self, found, wanted, msg=None):
        self._hold(found == wanted, f"{found!r} != {wanted!r}", msg)

    def assertNotEqual(self, found, other, msg=None):
        self._hold(found != other, f"{found!r} is just that", msg)

    def assertIs(self, found, wanted, msg=None):
        self._hold(found is wanted, f"{found!r} is not {wanted!r}", msg)

    def assertIsNone(self, found, msg=None):
        self._hold(found is None, f"{found!r} is not None", msg)

    def assertIsNotNone(self, found, msg=None):
        self._hold(found is not None, "it is None", msg)

    def assertIn(self, part, whole, msg=None):
        self._hold(part in whole, f"{part!r} is not in {whole!r}", msg)

    def assertNotIn(self, part, whole, msg=None):
        self._hold(part not in whole, f"{part!r} is in {whole!r}", msg)

    def assertIsInstance(self, found, kind, msg=None):
        self._hold(isinstance(found, kind), f"{found!r} is no {kind!r}", msg)

    def assertLess(self, found, bound, msg=None):
        self._hold(found < bound, f"{found!r} is not below {bound!r}", msg)

    def assertLessEqual(self, found, bound, msg=None):
        self._hold(found <= bound, f"{found!r} is above {bound!r}", msg)

    def assertGreater(self, found, bound, msg=None):
        self._hold(found > bound, f"{found!r} is not above {bound!r}", msg)

    def assertGreaterEqual(self, found, bound, msg=None):
        self._hold(found >= bound, f"{found!r} is below {bound!r}", msg)

    def assertRaises(self, kind, call=None, *args, **named):
        expected = _Raises(kind)
        if call is None:
            return expected
        with expected:
            call(*args, **named)
        return None

    def subTest(self, msg="", **named):
        return _SubTest(self, f"{msg} {named}")

    def _hold(self, held, found, msg):
        if not held:
            raise AssertionError(found if msg is None else f"{msg}: {found}")


class _Raises:
    def __init__(self, kind):
        self.kind = kind
        self.exception = None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            raise AssertionError(f"{self.kind!r} was not raised")
        self.exception = value
        return issubclass(kind, self.kind)


class _SubTest:
    """Its failure is recorded, and the test goes on."""

    def __init__(self, case, name):
        self.case = case
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None or not issubclass(kind, Exception):
            return False
        self.case.failures.append((self.name, value))
        return True


class Result:
    """Counts tests. A test fails if it raises, or if one of its subtests fails."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def run_module(self, module):
        for name in sorted(dir(module)):
            kind = getattr(module, name)
            if isinstance(kind, type) and issubclass(kind, TestCase) and kind is not TestCase:
                self.run_class(kind, f"{module.__name__}.{name}")

    def run_class(self, kind, name):
        for method in sorted(dir(kind)):
            if method.startswith("test"):
                self.run_test(kind, method, f"{name}.{method}")

    def run_test(self, kind, method, name):
        failures = []
        gc.collect()  # free what the test before allocated, so that the heap is less fragmented
        try:
            case = kind()
            case.failures = failures
            case.setUp()
            try:
                getattr(case, method)()
            finally:
                case.tearDown()
        except BaseException as error:  # even SystemExit is a failure
            failures.append(("", error))
        for sub, error in failures:
            print("FAIL", name, sub)
            sys.print_exception(error, sys.stdout)
        if failures:
            self.failed += 1
        else:
            self.passed += 1

    def finish(self):
        """Print the last line; -> the exit status, which is 1 also if no test ran."""
        print(f"{self.passed} passed, {self.failed} failed")
        return 0 if self.passed and not self.failed else 1

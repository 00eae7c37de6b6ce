# Broker.close(), and a broker in `with` and in `async with`.
import asyncio
import unittest

from slotmq import Broker


class TestLifetime(unittest.TestCase):
    def test_with_closes_the_broker(self):
        heard = []
        with Broker() as broker:
            broker.client("own", will=("state", "gone", 0, False))
            broker.subscribe("state", lambda topic, payload, qos, retained: heard.append(payload))
            broker.turn(0)
            self.assertFalse(broker.loop.stopping)
            conns = broker.conns
        self.assertEqual(heard, [b"gone"])
        self.assertEqual(conns.count, 0)

    def test_close_after_an_exception(self):
        broker = Broker()
        with self.assertRaises(ZeroDivisionError), broker:
            conns = broker.conns
            broker.client("own")
            raise ZeroDivisionError
        self.assertEqual(conns.count, 0)

    def test_async_with_serves_in_a_task(self):
        heard = []

        async def program():
            async with Broker() as broker:
                broker.subscribe("a", lambda topic, payload, qos, retained: heard.append(payload))
                broker.publish("a", "b")
                while not heard:
                    await asyncio.sleep(0.001)

        asyncio.run(program())
        self.assertEqual(heard, [b"b"])

    def test_other_names_are_not_found(self):
        broker = Broker()
        for name in ("__len__", "closing"):
            with self.assertRaises(AttributeError):
                getattr(broker, name)
        broker.close()

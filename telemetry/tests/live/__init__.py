"""Tests of `slotmq telemetry live`."""

"""Recordings become tables; a distribution of its own, `slotmq-telemetry`."""

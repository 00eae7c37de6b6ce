"""The live source (`slotmq telemetry live`), without Spark and network."""

"""Bridges between real brokers: slotmq on both runtimes, and mosquitto."""

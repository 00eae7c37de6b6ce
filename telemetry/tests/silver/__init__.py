"""Clocks and losses of silver, without Spark."""

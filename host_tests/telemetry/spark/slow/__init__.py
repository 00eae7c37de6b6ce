"""Slow tests (`make nightly`): kill -9, a cluster, the demo."""

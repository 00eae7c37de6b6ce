"""Slow tests (`make nightly`): a cluster, Spark Connect."""

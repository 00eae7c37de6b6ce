"""What takes long: kill -9, a cluster, the demo; run by `make nightly`."""

"""Run by `make test-telemetry`."""

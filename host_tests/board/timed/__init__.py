"""Tests that measure seconds: `make test-board` runs them alone."""

"""What is measured in seconds, and so runs alone: `make test-board`."""

"""The broker on an emulated RP2040: `make test-board`, and no part of `make test`."""

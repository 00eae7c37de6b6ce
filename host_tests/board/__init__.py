"""The broker on an emulated RP2040: `make test-emulator`, and no part of `make test`."""

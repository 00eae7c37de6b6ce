"""Tests on an emulated RP2040: `make test-board`; `make test` leaves them out."""

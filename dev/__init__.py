"""What only developers of slotmq run; no part of what is installed.

lanes.py fetch.py           lanes of tests; what they need beforehand
bench/ bench_telemetry.py   benchmarks, counted instructions; figures.py: documents have them
heap/ wear/                 what a board's heap has left; wear of its flash
emulator/                   MicroPython's RP2040 image in an emulator
fuzz/ apps/ peers/          malformed input; applications of others; mosquitto, Node.js
tidy/ spec/                 the repository's own rules; the statements of the standards
golden*.py                  golden files
clients.py fresh.py         `make clients`; README's commands in a minimal Debian
"""

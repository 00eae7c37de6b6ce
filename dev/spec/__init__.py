"""Which normative statements of the MQTT standards have tests.

Each version has a table in this folder, `mqtt-<version>.tsv`: its statements in our own words, and
the reason why one has no test. A test names statements with `@pytest.mark.spec("MQTT-3.1.2-24")`,
those of another version than 3.1.1 with `of="5.0"`. To add a version, add its table.
`python -m slotmq_dev.spec` prints statements and tests.
"""

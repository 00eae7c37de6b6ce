"""Which normative statements of the MQTT standards have tests.

Each version has two tables in this folder: `mqtt-<version>.tsv` has its statements in our own
words, `mqtt-<version>-untested.tsv` the reasons why some have no test. A test names statements
with `@pytest.mark.spec("MQTT-3.1.2-24")`, those of another version than 3.1.1 with `of="5.0"`. To
add a version, add its tables. `python -m slotmq_dev.spec` prints statements and tests.
"""

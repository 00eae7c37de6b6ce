"""Which normative statements of the MQTT standards the tests would see broken.

For each version there are two tables beside this file: `mqtt-<version>.tsv` has
its statements in our own words, `mqtt-<version>-untested.tsv` why no test names
some of them. A test names statements with `@pytest.mark.spec("MQTT-3.1.2-24")`,
those of another version than 3.1.1 with `of="5.0"`. Adding a version is adding
its tables. `python -m slotmq_tools.dev.spec` prints what stands against what.
"""

# v5: what MQTT 5.0 adds to protocol/, delivery/ and tables/; loaded where it is configured.

# config: what a broker is started with: limits, settings, mosquitto.conf, and the RAM they cost.

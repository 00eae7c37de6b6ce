# config: what a start is told: limits, settings, mosquitto.conf, and the RAM that they cost.

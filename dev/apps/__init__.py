"""Applications of others against this broker: each is installed into the cache, and makes a round.

`python -m slotmq_dev.apps` or `make apps`; needs the network the first time. Thirty retained
messages wait for the application. When a request comes it answers how many of them it has, so one
that reads a packet for each event is seen to stop. applications.py says how each is started;
broker.py is what stands around it.
host_tests/broker/interop/patterns.py has what they do as tests; the libraries for clients (paho,
aiomqtt, gmqtt, MQTT.js, mosquitto's) are tested there.
"""

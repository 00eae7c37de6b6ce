"""MQTT 5.0 over TCP: tests written from the standard, and the client they use."""

# protocol: a packet of MQTT 3.1 and 3.1.1 on its way in, from its first byte to its handler.

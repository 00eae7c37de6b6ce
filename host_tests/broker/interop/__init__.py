"""The broker and the clients that people use: paho-mqtt, mosquitto's programs, MQTT.js."""

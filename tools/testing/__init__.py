"""A broker in tests: `Mqtt`, and the plugin of pytest."""

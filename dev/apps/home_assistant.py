"""The files of Home Assistant: an entry of its MQTT integration, and an automation that answers.

Its entities come by discovery; their states are the retained messages.
"""

from typing import Any

_TIME = "2025-01-01T00:00:00+00:00"
ENTRY: dict[str, Any] = {
    "version": 1,
    "minor_version": 5,
    "key": "core.config_entries",
    "data": {
        "entries": [
            {
                "created_at": _TIME,
                "data": "DATA",
                "disabled_by": None,
                "discovery_keys": {},
                "domain": "mqtt",
                "entry_id": "mqtt",
                "minor_version": 2,
                "modified_at": _TIME,
                "options": {},
                "pref_disable_new_entities": False,
                "pref_disable_polling": False,
                "source": "user",
                "subentries": [],
                "title": "slotmq",
                "unique_id": None,
                "version": 1,
            }
        ]
    },
}
CONFIG = """\
homeassistant:
  name: home
  country: US
http:
  server_host: 127.0.0.1
  server_port: PORT
logger:
  default: warning
automation:
  - id: answer
    alias: answer
    trigger:
      - platform: mqtt
        topic: app/in
    action:
      - service: mqtt.publish
        data:
          topic: app/out
          qos: 1
          payload: >-
            {{ trigger.payload }} {{ states.sensor | map(attribute='state') | select('is_number')
            | list | count }}
"""

// An application with MQTT.js: echo_mqttjs.cjs URL CA
"use strict";
const fs = require("fs");
const mqtt = require("mqtt");

const [url, ca] = process.argv.slice(2);
const kept = new Set();
const client = mqtt.connect(url, { ca: ca ? fs.readFileSync(ca) : undefined });
client.on("error", (error) => {
  console.error(error.message);
  process.exit(1);
});
client.on("connect", () => client.subscribe({ "app/kept/+": { qos: 0 }, "app/in": { qos: 1 } }));
client.on("message", (topic, payload) => {
  if (topic === "app/in") client.publish("app/out", `${payload} ${kept.size}`, { qos: 1 });
  else kept.add(topic);
});

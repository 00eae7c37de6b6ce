// MQTT.js over WebSocket: node mqttjs.cjs URL CA. Messages of each QoS come back whole, also after
// a reconnect. Prints ok.
"use strict";

const fs = require("node:fs");
const { once } = require("node:events");
const mqtt = require("mqtt");

const [url, ca] = process.argv.slice(2);
const MESSAGES = 200;

async function main() {
  const name = `js${process.pid}`;
  const client = mqtt.connect(url, {
    clientId: name, ca: fs.readFileSync(ca), reconnectPeriod: 50, protocolVersion: 5,
  });
  await once(client, "connect");
  await client.subscribeAsync(`${name}/#`, { qos: 2 });
  const came = [];
  client.on("message", (topic, payload) => came.push(payload.toString()));
  const sent = [];
  for (let round = 0; round < 2; round++) {
    for (let number = 0; number < MESSAGES; number++) {
      const text = `${round} ${number} ${"x".repeat(number * 7)}`;
      sent.push(text);
      await client.publishAsync(`${name}/${number % 5}`, text, { qos: number % 3 });
    }
    while (came.length < sent.length) await once(client, "message");
    if (round === 0) {
      client.stream.destroy();
      await once(client, "connect");
    }
  }
  if (came.sort().join() !== sent.sort().join()) throw new Error("other messages came");
  await client.endAsync();
  console.log("ok");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

// Scenarios with MQTT.js: node scenarios.cjs NAME HOST PORT BASE VERSION
// Ends with status 0 when all was as it should be. NODE_PATH says where `mqtt` is.
"use strict";

const assert = require("node:assert/strict");
const { once } = require("node:events");
const mqtt = require("mqtt");

const [name, host, port, base, version] = process.argv.slice(2);
const protocolVersion = Number(version);
const LARGE = Buffer.alloc(20480, "0123456789abcdef");
const started = [];

/** A connected client, whose `received()` is the next message. */
async function start(clientId, options = {}) {
  const protocolId = protocolVersion === 3 ? "MQIsdp" : "MQTT";
  const client = mqtt.connect(`mqtt://${host}:${port}`, {
    clientId: base + clientId, protocolId, protocolVersion, reconnectPeriod: 0, ...options,
  });
  const waiting = [];
  const came = [];
  client.on("message", (topic, payload, { qos, retain }) => {
    const message = [topic, payload.toString(), qos, retain];
    waiting.length ? waiting.shift()(message) : came.push(message);
  });
  client.received = () =>
    came.length ? Promise.resolve(came.shift()) : new Promise((tell) => waiting.push(tell));
  started.push(client);
  const [connack] = await once(client, "connect");
  client.present = connack.sessionPresent;
  return client;
}

async function expect(client, topic, payload, qos, retain = false) {
  assert.deepEqual(await client.received(), [`${base}/${topic}`, payload.toString(), qos, retain]);
}

const scenarios = {
  async qos() {
    const reader = await start("r");
    const writer = await start("w");
    const granted = await reader.subscribeAsync({ [`${base}/+/x`]: { qos: 2 } });
    assert.equal(granted[0].qos, 2);
    for (const qos of [0, 1, 2]) {
      for (const payload of ["small", LARGE]) {
        await writer.publishAsync(`${base}/${qos}/x`, payload, { qos });
        await expect(reader, `${qos}/x`, payload, qos);
      }
    }
  },

  async burst() {
    const client = await start("");
    await client.subscribeAsync(`${base}/#`, { qos: 2 });
    const numbers = Array.from({ length: 200 }, (_, number) => number);
    const all = numbers.map((n) => client.publishAsync(`${base}/n`, `${n}`, { qos: 1 + (n & 1) }));
    const came = [[], []];
    for (const _ of numbers) {
      const [, payload, qos] = await client.received();
      came[qos - 1].push(Number(payload));
    }
    await Promise.all(all);
    assert.deepEqual(came, [0, 1].map((odd) => numbers.filter((n) => (n & 1) === odd)));
  },

  /** More QoS 2 messages under way than the broker has slots for: MQTT.js sends them at once. */
  async overflow() {
    const client = await start("", { clean: false, reconnectPeriod: 10 });
    await client.subscribeAsync(`${base}/#`, { qos: 2 });
    client.on("error", () => {}); // EPIPE, where it writes into the closed connection
    const closed = new Promise((tell) => client.once("close", tell));
    const numbers = Array.from({ length: 60 }, (_, number) => `${number}`);
    const all = numbers.map((payload) => client.publishAsync(`${base}/n`, payload, { qos: 2 }));
    await closed;
    await Promise.all(all);
    const came = [];
    for (const _ of numbers) came.push((await client.received())[1]);
    assert.deepEqual(came, numbers);
  },

  async retained() {
    const writer = await start("w");
    await writer.publishAsync(`${base}/old`, LARGE, { qos: 1, retain: true });
    const reader = await start("r");
    await reader.subscribeAsync(`${base}/#`, { qos: 1 });
    await expect(reader, "old", LARGE, 1, true);
    await writer.publishAsync(`${base}/old`, "", { qos: 1, retain: true });
    await expect(reader, "old", "", 1, false);
  },

  async will() {
    const reader = await start("r");
    await reader.subscribeAsync(`${base}/will/+`, { qos: 1 });
    const will = (topic) => ({ will: { topic: `${base}/will/${topic}`, payload: "bye", qos: 1 } });
    await (await start("a", will("a"))).endAsync();
    (await start("b", will("b"))).stream.destroy();
    await expect(reader, "will/b", "bye", 1);
  },

  async offline() {
    const away = await start("r", { clean: false });
    assert.equal(away.present, false);
    await away.subscribeAsync(`${base}/+`, { qos: 2 });
    await away.endAsync();
    const writer = await start("w");
    await writer.publishAsync(`${base}/1`, "first", { qos: 1 });
    await writer.publishAsync(`${base}/2`, LARGE, { qos: 2 });
    const back = await start("r", { clean: false });
    assert.equal(back.present, protocolVersion > 3); // 3.1 has no bit for it
    await expect(back, "1", "first", 1);
    await expect(back, "2", LARGE, 2);
    await back.endAsync();
    assert.equal((await start("r", { clean: true })).present, false);
  },

  /** One of two messages at a time, one with aliases for topics, and an older one. */
  async mixed() {
    const reader = await start("r", { properties: { receiveMaximum: 2 } });
    // QoS 2 messages lose their topic in MQTT.js where it has but an alias.
    const brief = await start("b", { properties: { topicAliasMaximum: 5 } });
    const old = await start("o", { protocolVersion: 4 });
    const writer = await start("w", { autoAssignTopicAlias: true });
    await reader.subscribeAsync(`${base}/#`, { qos: 2 });
    await old.subscribeAsync(`${base}/#`, { qos: 2 });
    await brief.subscribeAsync(`${base}/#`, { qos: 1 });
    const properties = { contentType: "text/plain", userProperties: { a: "1" } };
    for (const qos of [0, 1, 2, 2, 1, 0]) {
      await writer.publishAsync(`${base}/x`, "hi", { qos, properties });
      await expect(reader, "x", "hi", qos);
      await expect(brief, "x", "hi", Math.min(qos, 1));
      await expect(old, "x", "hi", qos);
    }
  },

  async refused() {
    const client = mqtt.connect(`mqtt://${host}:${port}`, {
      clientId: base, protocolVersion, reconnectPeriod: 0,
    });
    started.push(client);
    const [error] = await once(client, "error");
    assert.match(error.message, /protocol version/i);
  },
};

scenarios[name]()
  .then(() => Promise.all(started.map((client) => client.endAsync(true))))
  .then(() => process.exit(0))
  .catch((error) => {
    console.error(error);
    process.exit(1);
  });

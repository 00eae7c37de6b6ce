// MQTT.js, told line by line what to do (adapter_mqttjs.py). NODE_PATH says where `mqtt` is.
"use strict";

const { once } = require("node:events");
const readline = require("node:readline");
const mqtt = require("mqtt");

const PATIENCE_MS = 10000;
const NAMES = {
  format: "payloadFormatIndicator", content_type: "contentType",
  response_topic: "responseTopic", correlation: "correlationData",
  expiry: "messageExpiryInterval", user: "userProperties",
};
const clients = new Map();

/** The properties that the message has, by the names of MQTT.js. */
function given(message) {
  const found = {};
  for (const [ours, name] of Object.entries(NAMES)) {
    if (message[ours] !== null) found[name] = message[ours];
  }
  if (message.format !== null) found.payloadFormatIndicator = message.format === 1;
  if (message.correlation !== null) found.correlationData = Buffer.from(message.correlation);
  if (message.user.length) found.userProperties = Object.fromEntries(message.user);
  else delete found.userProperties;
  return found;
}

function came(topic, payload, { qos, retain, properties = {} }) {
  const message = { topic, payload: payload.toString(), qos, retain };
  for (const [ours, name] of Object.entries(NAMES)) message[ours] = properties[name] ?? null;
  if (message.format !== null) message.format = Number(message.format);
  if (message.correlation !== null) message.correlation = message.correlation.toString();
  message.user = Object.entries(message.user ?? {});
  message.aliased = properties.topicAlias !== undefined;
  message.identifiers = [properties.subscriptionIdentifier ?? []].flat();
  return message;
}

/** What one side puts in and the other waits for. */
class Queue {
  #waiting = [];
  #items = [];
  put(item) {
    this.#waiting.length ? this.#waiting.shift()(item) : this.#items.push(item);
  }
  get() {
    if (this.#items.length) return Promise.resolve(this.#items.shift());
    return new Promise((tell) => this.#waiting.push(tell));
  }
}

const doing = {
  async connect(_, { client, host, port, name, clean, expiry, aliases, will }) {
    const properties = { sessionExpiryInterval: expiry };
    if (aliases) properties.topicAliasMaximum = aliases;
    const options = { clientId: name, protocolVersion: 5, reconnectPeriod: 0, clean, properties };
    if (will) {
      const { topic, payload, qos, retain } = will;
      const more = { willDelayInterval: 0, ...given(will) };
      options.will = { topic, payload, qos, retain, properties: more };
    }
    const made = mqtt.connect(`mqtt://${host}:${port}`, options);
    made.messages = new Queue();
    made.ends = new Queue();
    made.on("message", (...fields) => made.messages.put(came(...fields)));
    made.on("disconnect", (packet) => made.ends.put(packet.reasonCode));
    made.on("packetreceive", ({ cmd, reasonCode = 0 }) => {
      if (cmd === "puback") made.code = reasonCode; // which is not handed to who publishes
    });
    clients.set(client, made);
    return (await once(made, "connect"))[0].sessionPresent;
  },

  async subscribe(client, { filters, qos, no_local: nl, as_published: rap, handling: rh, identifier }) {
    const options = { qos, nl, rap, rh };
    if (identifier) options.properties = { subscriptionIdentifier: identifier };
    return (await client.subscribeAsync(filters, options)).map((granted) => granted.qos);
  },

  async publish(client, { message, alias, times }) {
    const { payload, qos, retain } = message;
    for (let number = 0; number < times; number++) {
      const properties = given(message);
      if (alias) properties.topicAlias = alias;
      const topic = alias && number ? "" : message.topic;
      await client.publishAsync(topic, payload, { qos, retain, properties });
    }
    return client.code;
  },

  receive: (client) => client.messages.get(),
  ended: (client) => client.ends.get(),
  leave: async (client) => void (await client.endAsync()),
  async die(client) {
    const closed = once(client, "close");
    client.stream.destroy();
    await closed;
  },
  close: async (client) => void (await client?.endAsync(true)),
};

async function answer(line) {
  const how = JSON.parse(line);
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`${how.do} took too long`)), PATIENCE_MS);
  });
  try {
    const value = await Promise.race([doing[how.do](clients.get(how.client), how), late]);
    return { value: value ?? null };
  } catch (error) {
    return { error: String(error.stack ?? error) };
  } finally {
    clearTimeout(timer);
  }
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await answer(line)));
  }
  process.exit(0);
}

main();

// SCRAM-SHA-256 (RFC 5802, RFC 7677) with MQTT.js: node scram.cjs HOST PORT NAME [CAFILE]
// The password is in $SLOTMQ_PASSWORD, or comes from standard input. With CAFILE, a file with the
// CA to trust, it speaks TLS. Prints the reason code of the broker's answer. NODE_PATH says where
// `mqtt` is.
"use strict";

const assert = require("node:assert/strict");
const { createHash, createHmac, pbkdf2Sync, randomBytes } = require("node:crypto");
const { once } = require("node:events");
const { readFileSync } = require("node:fs");
const mqtt = require("mqtt");

const METHOD = "SCRAM-SHA-256";
const CONTINUE = 0x18;
const [host, port, name, cafile] = process.argv.slice(2);
const password = process.env.SLOTMQ_PASSWORD ?? readFileSync(0, "utf8").trimEnd();
const hmac = (key, text) => createHmac("sha256", key).update(text).digest();

const nonce = randomBytes(18).toString("base64");
const first = `n=${name},r=${nonce}`;
let signature; // by which the broker shows that it knows the password

/** The answer to the broker's challenge. */
function final(challenge) {
  const fields = new Map(challenge.split(",").map((field) => [field[0], field.slice(2)]));
  assert(fields.get("r").startsWith(nonce) && fields.get("r") !== nonce);
  const salt = Buffer.from(fields.get("s"), "base64");
  const salted = pbkdf2Sync(password, salt, Number(fields.get("i")), 32, "sha256");
  const withoutProof = `c=${Buffer.from("n,,").toString("base64")},r=${fields.get("r")}`;
  const signed = [first, challenge, withoutProof].join(",");
  signature = hmac(hmac(salted, "Server Key"), signed).toString("base64");
  const key = hmac(salted, "Client Key");
  const mask = hmac(createHash("sha256").update(key).digest(), signed);
  const proof = key.map((byte, at) => byte ^ mask[at]).toString("base64");
  return `${withoutProof},p=${proof}`;
}

async function main() {
  const properties = { authenticationMethod: METHOD, authenticationData: Buffer.from(`n,,${first}`) };
  const options = { protocolVersion: 5, reconnectPeriod: 0, properties };
  if (cafile) options.ca = readFileSync(cafile);
  const client = mqtt.connect(`${cafile ? "mqtts" : "mqtt"}://${host}:${port}`, options);
  client.handleAuth = ({ reasonCode, properties: { authenticationData } }, answer) => {
    assert.equal(reasonCode, CONTINUE);
    const data = Buffer.from(final(authenticationData.toString()));
    const more = { authenticationMethod: METHOD, authenticationData: data };
    answer(null, { cmd: "auth", reasonCode: CONTINUE, properties: more });
  };
  const refused = once(client, "error").then(([error]) => ({ reasonCode: error.code }));
  const connected = once(client, "connect").then(([connack]) => connack);
  connected.catch(() => {}); // the error that `refused` is for
  const connack = await Promise.race([connected, refused]);
  if (connack.reasonCode === 0) {
    assert.equal(connack.properties.authenticationMethod, METHOD);
    assert.equal(connack.properties.authenticationData.toString(), `v=${signature}`);
    await client.publishAsync("scram", "hi", { qos: 1 });
  }
  await client.endAsync(true);
  console.log(connack.reasonCode);
  process.exit(0);
}

main();

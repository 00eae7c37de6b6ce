// Loaded before Zigbee2MQTT: a radio without hardware, with $FAKE_DEVICES devices.
"use strict";
const { EventEmitter } = require("events");
const herdsman = require("zigbee-herdsman");

const hex = (n) => "0x" + n.toString(16).padStart(16, "0");

class Endpoint {} // Zigbee2MQTT asks for the name of the class

const MODELS = [["Philips", "LCT015"], ["LUMI", "lumi.weather"]];

function device(n) {
  const [maker, model] = n ? MODELS[n % 2] : [];
  const one = {
    ieeeAddr: hex(0x158d0001 + n),
    type: n ? "EndDevice" : "Coordinator",
    networkAddress: n,
    modelID: model,
    manufacturerName: maker,
    powerSource: "Battery",
    interviewState: "SUCCESSFUL",
    interviewCompleted: true,
    customClusters: {},
    meta: {},
    isDeleted: false,
    save() {},
    on() {},
    removeListener() {},
    addCustomCluster() {},
    getEndpoint: (id) => one.endpoints.find((each) => each.ID === id),
  };
  const none = () => [];
  const endpoint = Object.assign(new Endpoint(), {
    ID: 1, deviceIeeeAddress: one.ieeeAddr, binds: [], configuredReportings: [], meta: {},
    inputClusters: [], outputClusters: [], getDevice: () => one, save() {},
    getInputClusters: none, getOutputClusters: none, supportsInputCluster: () => false,
    supportsOutputCluster: () => false, getClusterAttributeValue() {},
    async read() {}, async bind() {}, async configureReporting() {},
  });
  one.endpoints = [endpoint];
  return one;
}

class Controller extends EventEmitter {
  devices = Array.from({ length: 1 + Number(process.env.FAKE_DEVICES) }, (_, n) => device(n));
  async start() { return "resumed"; }
  async stop() {}
  isStopping() { return false; }
  async getCoordinatorVersion() { return { type: "fake", meta: { revision: 1 } }; }
  async getNetworkParameters() { return { panID: 1, extendedPanID: hex(1), channel: 11 }; }
  async backup() {}
  async permitJoin() {}
  getPermitJoin() { return false; }
  getPermitJoinEnd() {}
  getDevicesByType(type) { return this.devices.filter((each) => each.type === type); }
  getDeviceByIeeeAddr(address) { return this.devices.find((each) => each.ieeeAddr === address); }
  *getDevicesIterator(wanted = () => true) { yield* this.devices.filter(wanted); }
  *getGroupsIterator() {}
  getGroupByID() {}
}
Object.defineProperty(herdsman, "Controller", { value: Controller });

// main.cjs - an emulated board as a process.
//
//   node main.cjs --firmware=FILE --rom=FILE [--flash=FILE] [--slirp=COMMAND] [--log=FILE]
//   node main.cjs ... --exec=SCRIPT [--keep=no] [--plain=yes] [--apart=ADDRESS]
//
// UART 0 is the REPL, offered on a free port of loopback; UART 1 is PPP, whose other end is
// the command's standard input and output, started anew with the board. Of whatever it
// offers the first line of standard output tells the ports, as JSON: {"repl": N, "control": N}.
// Whoever connects to the second gets figures as JSON. With --exec the board runs one
// script over the raw REPL, as fast as it can; batch.cjs says what it prints.
'use strict';

const { spawn } = require('node:child_process');
const { openSync } = require('node:fs');
const net = require('node:net');
const { Chip } = require('./chip.cjs');
const { Clock } = require('./clock.cjs');
const { Batch } = require('./batch.cjs');
const { Apart } = require('./apart.cjs');

const NET_DELAY_MS = 5; // an answer never comes before the board has finished its question
const REPL_BAUD = 921600; // eight times what a board has: copying files takes long enough
const HOST = '127.0.0.1';

const options = Object.fromEntries(process.argv.slice(2).map((word) => {
  const [name, ...rest] = word.replace(/^--/, '').split('=');
  return [name, rest.join('=')];
}));
const sent = [[], []]; // what the chip has sent on each UART
const sinks = [null, null];
const batch = options.exec ? new Batch(options.exec) : null;
const uarts = [
  { onByte: (byte) => { sent[0].push(byte); }, baud: REPL_BAUD },
  { onByte: (byte) => { sent[1].push(byte); }, delayMs: NET_DELAY_MS },
];
const chip = new Chip(options, uarts, batch && ((tag) => batch.mark(tag, clock)));
const apart = options.apart ? new Apart(Number(options.apart)) : null;
const clock = new Clock(chip, { free: !!batch, flush, onReset, apart });

// True if there was anything.
function flush() {
  let any = false;
  sent.forEach((bytes, n) => {
    if (bytes.length) {
      any = true;
      sinks[n]?.(Buffer.from(bytes));
      bytes.length = 0;
    }
  });
  return any;
}

function receive(uart, bytes) {
  clock.wake();
  chip.mcu.uart[uart].send(bytes);
}

let slirp = null;

function startSlirp() {
  const log = options.log ? openSync(options.log, 'a') : 'ignore';
  const child = spawn('sh', ['-c', `exec ${options.slirp} <&3 >&3`], {
    stdio: ['ignore', 'ignore', log, 'pipe'],
  });
  const line = child.stdio[3]; // a socket pair: slirp writes to its standard input
  line.on('data', (bytes) => { if (slirp === child) { receive(1, bytes); } });
  line.on('error', () => {});
  sinks[1] = (bytes) => line.write(bytes);
  slirp = child;
}

// PPP is negotiated once in slirp's life.
function onReset() {
  if (slirp) {
    const old = slirp;
    slirp = null;
    old.once('exit', startSlirp);
    old.kill('SIGKILL');
  }
}

function figures() {
  return {
    resets: chip.resets, bites: chip.bites, erases: chip.erases, instructions: clock.instructions,
    seconds: chip.clock.nanosCounter / 1e9, // since it last began
    idle_seconds: clock.idleNanos / 1e9,
  };
}

function offer(onConnection) {
  return new Promise((resolve) => {
    const server = net.createServer(onConnection);
    server.listen(0, HOST, () => resolve(server.address().port));
  });
}

let replSocket = null;

function onRepl(socket) {
  socket.setNoDelay(true);
  replSocket?.destroy();
  replSocket = socket;
  sinks[0] = (bytes) => socket.write(bytes);
  socket.on('data', (bytes) => receive(0, bytes));
  socket.on('close', () => {
    if (replSocket === socket) {
      replSocket = sinks[0] = null;
    }
  });
  socket.on('error', () => {});
}

function end(status) {
  clock.stopped = true;
  flush();
  if (options.keep !== 'no') {
    chip.save();
  }
  slirp?.kill('SIGKILL');
  process.exit(status);
}

async function main() {
  if (batch) {
    sinks[0] = (bytes) => batch.receive(bytes, chip, end);
    batch.start(chip);
  } else {
    const repl = await offer(onRepl);
    const control = await offer((socket) => {
      socket.on('error', () => {});
      socket.end(JSON.stringify(figures()));
    });
    console.log(JSON.stringify({ repl, control }));
  }
  if (options.slirp) {
    startSlirp();
  }
  clock.run();
}

process.on('SIGTERM', () => end(0));
process.on('SIGINT', () => end(0));
if (!batch) { // whoever started this has gone
  process.stdin.on('end', () => end(0)).resume();
}
main();

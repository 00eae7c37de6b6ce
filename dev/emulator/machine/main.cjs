// main.cjs - an emulated board as a process.
//
//   node main.cjs --firmware=FILE --rom=FILE [--flash=FILE] [--slirp=COMMAND] [--log=FILE]
//   node main.cjs ... --exec=SCRIPT [--keep=no] [--plain=yes] [--count=ADDRESS]
//
// UART 0 is the REPL, on a free port of loopback. UART 1 is PPP, connected to standard input and
// output of the slirp command, which is restarted with the board. The first line of standard
// output has the ports as JSON: {"repl": N, "control": N}. A connection to the control port
// receives counters as JSON. With --exec the board runs one script over the raw REPL, faster than
// real time; batch.cjs describes its output. --count: address of a function to count.
'use strict';

const { spawn } = require('node:child_process');
const { openSync } = require('node:fs');
const net = require('node:net');
const { Chip } = require('./chip.cjs');
const { Clock } = require('./clock.cjs');
const { Batch } = require('./batch.cjs');
const { FunctionCounter } = require('./function_counter.cjs');

const NET_DELAY_MS = 5; // so that no answer arrives before the board has sent its request
const REPL_BAUD = 921600; // eight times a board's, to copy files faster
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
const counter = options.count ? new FunctionCounter(Number(options.count)) : null;
const clock = new Clock(chip, { free: !!batch, flush, onReset, counter });

// Passes on what the chip has sent; -> whether there was anything.
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

// slirp negotiates PPP only once, so a reset of the board needs a new one.
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
    seconds: chip.clock.nanosCounter / 1e9, // since the last start
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
if (!batch) { // end with the parent process
  process.stdin.on('end', () => end(0)).resume();
}
main();

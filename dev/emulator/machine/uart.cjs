// uart.cjs - adds to rp2040js's UART: bytes arrive at the baud rate, the FIFO's level, the receive
// timeout interrupt, and flow control: no byte is lost while the FIFO is full.
'use strict';

const RX = 1 << 4;
const TX = 1 << 5;
const RX_TIMEOUT = 1 << 6;
const LEVELS = [4, 8, 16, 24, 28];
const DR = 0x00;
const RSR = 0x04;
const IFLS = 0x34;
const ICR = 0x44;
const DMACR = 0x48;
const BITS = 10; // of a byte on the line

// opts: onByte(byte): called for each byte the chip sends; delayMs: delay of bytes sent to the
// chip; baud: replaces the baud rate that the chip sets.
function improve(uart, clock, opts) {
  uart.level = 0x12;
  uart.waiting = [];
  uart.dma = 0;
  const levelReached = () => LEVELS[(uart.level >> 3) & 7] ?? 16;
  const bitNanos = () => 1e9 / (opts.baud || (uart.baudDivider ? uart.baudRate : 115200));
  const update = () => uart.rp2040.setInterrupt(
    uart.irq, !!(uart.interruptStatus & uart.interruptMask));
  uart.checkInterrupts = update;

  const timeout = clock.createAlarm(() => {
    if (!uart.rxFIFO.empty) {
      uart.interruptStatus |= RX_TIMEOUT;
      update();
    }
  });
  const arrival = clock.createAlarm(() => {
    uart.arriving = false;
    if (!uart.rxEnabled || !uart.enabled) {
      uart.waiting = [];
    }
    if (!uart.waiting.length) {
      return;
    }
    if (!uart.rxFIFO.full) {
      uart.rxFIFO.push(uart.waiting.shift());
      if (uart.rxFIFO.itemCount >= levelReached()) {
        uart.interruptStatus |= RX;
      }
      timeout.schedule(32 * bitNanos());
      update();
    }
    next();
  });
  const next = () => {
    if (uart.waiting.length && !uart.arriving) {
      uart.arriving = true;
      arrival.schedule(BITS * bitNanos());
    }
  };
  uart.send = delayed(clock, opts.delayMs || 0, (bytes) => {
    for (const byte of bytes) {
      uart.waiting.push(byte);
    }
    next();
  });
  improveRegisters(uart, opts, { levelReached, bitNanos, timeout });
}

// send() with a delay
function delayed(clock, delayMs, send) {
  if (!delayMs) {
    return send;
  }
  const delay = delayMs * 1e6;
  const under = [];
  const alarm = clock.createAlarm(() => {
    while (under.length && under[0].at <= clock.nanosCounter + 1) {
      send(under.shift().bytes);
    }
    if (under.length) {
      alarm.schedule(under[0].at - clock.nanosCounter);
    }
  });
  return (bytes) => {
    under.push({ at: clock.nanosCounter + delay, bytes });
    if (under.length === 1) {
      alarm.schedule(delay);
    }
  };
}

function improveRegisters(uart, opts, { levelReached, bitNanos, timeout }) {
  const read = uart.readUint32.bind(uart);
  const write = uart.writeUint32.bind(uart);
  uart.readUint32 = (offset) => {
    switch (offset) {
      case DR: {
        const byte = uart.rxFIFO.pull();
        if (uart.rxFIFO.itemCount < levelReached()) {
          uart.interruptStatus &= ~RX;
        }
        if (uart.rxFIFO.empty) {
          uart.interruptStatus &= ~RX_TIMEOUT;
          timeout.cancel();
        }
        uart.checkInterrupts();
        return byte;
      }
      case RSR: return 0;
      case IFLS: return uart.level;
      case DMACR: return uart.dma;
      default: return read(offset);
    }
  };
  uart.writeUint32 = (offset, value) => {
    switch (offset) {
      case DR:
        uart.interruptStatus |= TX;
        opts.onByte(value & 0xff);
        uart.checkInterrupts();
        return;
      case RSR: return;
      case IFLS: uart.level = value & 0x3f; return;
      case DMACR: uart.dma = value; return;
      case ICR:
        uart.interruptStatus &= ~uart.rawWriteValue;
        if ((uart.rawWriteValue & RX_TIMEOUT) && !uart.rxFIFO.empty) {
          timeout.schedule(32 * bitNanos());
        }
        uart.checkInterrupts();
        return;
      default: write(offset, value);
    }
  };
}

module.exports = { improve };

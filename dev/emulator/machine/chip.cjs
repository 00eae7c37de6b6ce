// chip.cjs - an RP2040 with 2 MB of flash. It starts where the boot ROM would end, and restarts
// with the same flash when the watchdog fires (machine.reset() uses it too).
'use strict';

const { readFileSync, existsSync, writeFileSync } = require('node:fs');
const { RP2040, LogLevel, ConsoleLogger } = require('rp2040js');
const { improve } = require('./uart.cjs');
const { FastCore } = require('./fast_core.cjs');

const FLASH_BYTES = 2 << 20;
const SECTOR = 4096;
const PAGE = 256;
const ERASE_NANOS = 45e6;
const PROGRAM_NANOS = 0.4e6;
const BOOT2 = 0x10000000;
const WATCHDOG = 0x40058;
const RING_OSCILLATOR = 0x40060;
const SCRATCH0 = 0x0c;
const BY_TIMER = 1; // the watchdog's reset reason
// Breakpoint numbers of the boot ROM's functions; see rom.S.
const ERASE = 0x13;
const PROGRAM = 0x14;
const STACK_WORDS = 256;
const STACK_END = 0x20042000;
const NOTHING_TO_DO = [0x11, 0x12, 0x15, 0x16];

class Chip {
  // files: {firmware, rom, flash?, plain?}; plain: rp2040js executes everything;
  // uarts: [{onByte, delayMs}, ...]; onMark(tag, chip)
  constructor(files, uarts, onMark) {
    this.files = files;
    this.uarts = uarts;
    this.onMark = onMark;
    this.resets = 0;
    this.bites = 0; // resets because the watchdog was not fed in time
    this.erases = 0;
    this.rom = new Uint32Array(4096);
    new Uint8Array(this.rom.buffer).set(readFileSync(files.rom));
    this.firmware = readFileSync(files.firmware);
    this.kept = files.flash && existsSync(files.flash) ? readFileSync(files.flash) : null;
    this.start();
  }

  start() {
    const mcu = new RP2040();
    this.mcu = mcu;
    this.clock = mcu.clock;
    this.core = mcu.core;
    this.fastCore = this.files.plain ? null : new FastCore(mcu);
    this.resetWanted = false;
    mcu.logger = new ConsoleLogger(LogLevel.Error, false);
    this.uarts.forEach((opts, n) => improve(mcu.uart[n], mcu.clock, opts));
    this.replaceOscillator();
    this.replaceWatchdog();
    mcu.loadBootrom(this.rom);
    if (this.kept) {
      mcu.flash.set(this.kept.subarray(0, FLASH_BYTES), 0);
    }
    mcu.flash.set(this.firmware, 0);
    mcu.onBreak = (number) => this.romFunction(number);
    this.nanosPerCycle = 1e9 / mcu.clkSys;
    mcu.addClockListener?.((hertz) => { this.nanosPerCycle = 1e9 / hertz; });
    this.core.PC = BOOT2;
    this.core.LR = 0;
  }

  reset() {
    const before = this.mcu.peripherals[WATCHDOG];
    this.resets++;
    this.bites += this.mcu.peripherals[WATCHDOG].reason === BY_TIMER ? 1 : 0;
    this.kept = Buffer.from(this.mcu.flash.subarray(0, FLASH_BYTES));
    this.start();
    const after = this.mcu.peripherals[WATCHDOG];
    after.scratchData.set(before.scratchData);
    after.reason = before.reason;
  }

  save() {
    if (this.files.flash) {
      writeFileSync(this.files.flash, this.mcu.flash.subarray(0, FLASH_BYTES));
    }
  }

  // A pseudo-random bit, the same sequence in every run
  replaceOscillator() {
    const oscillator = this.mcu.peripherals[RING_OSCILLATOR];
    const registers = new Map();
    let state = 2654435761;
    oscillator.readUint32 = (offset) => {
      if (offset === 0x1c) {
        state ^= state << 13;
        state >>>= 0;
        state ^= state >>> 17;
        state ^= state << 5;
        state >>>= 0;
        return state & 1;
      }
      return offset === 0x18 ? 0x80001000 : registers.get(offset) ?? 0;
    };
    oscillator.writeUint32 = (offset, value) => registers.set(offset, value >>> 0);
  }

  // A write to scratch register 0 is a mark (batch.cjs).
  replaceWatchdog() {
    const watchdog = this.mcu.peripherals[WATCHDOG];
    watchdog.onWatchdogTrigger = () => {
      this.resetWanted = true;
      watchdog.alarm.enable = false; // else its counter, which is 0, makes it due again at once
    };
    const write = watchdog.writeUint32.bind(watchdog);
    watchdog.writeUint32 = (offset, value) => {
      write(offset, value);
      if (offset === SCRATCH0) {
        this.onMark?.(value >>> 0, this);
      }
    };
  }

  romFunction(number) {
    const r = this.core.registers;
    const flash = this.mcu.flash;
    if (NOTHING_TO_DO.includes(number)) {
      return;
    }
    if (number === ERASE) {
      flash.fill(0xff, r[0], r[0] + r[1]);
      this.erases += r[1] / SECTOR;
      this.clock.tick(ERASE_NANOS * Math.ceil(r[1] / SECTOR));
    } else if (number === PROGRAM) {
      for (let i = 0; i < r[2]; i++) {
        flash[r[0] + i] &= this.mcu.readUint8(r[1] + i);
      }
      this.clock.tick(PROGRAM_NANOS * Math.ceil(r[2] / PAGE));
    } else {
      const words = Array.from({ length: STACK_WORDS }, (_, n) => this.core.SP + 4 * n)
        .filter((at) => at < STACK_END)
        .map((at) => this.mcu.readUint32(at));
      const code = [this.core.PC, this.core.LR, ...words.filter((word) => word >>> 20 === 0x100)];
      const where = `at ${code.map((at) => at.toString(16)).join(' ')}`;
      throw new Error(`the program stopped at breakpoint ${number.toString(16)}, ${where}`);
    }
  }
}

module.exports = { Chip };

// fast_core.cjs - executes common instructions three times as fast as rp2040js.
//
// rp2040js compares an opcode with up to 80 patterns. This loop decodes common instructions by a
// table, and keeps registers and flags in local variables. It only accesses flash and RAM. At
// anything else (another address, an exception, a breakpoint) it stores its state and ends, and
// rp2040js executes that instruction. Results, cycles and times of interrupts are the same.
'use strict';

const { INSTRUCTIONS } = require('./instructions.cjs');

// For each opcode the number of its instruction, or 0; for each byte its number of bits
const KINDS = new Uint8Array(65536);
const BITS = Uint8Array.from({ length: 256 }, (_, n) => n.toString(2).replace(/0/g, '').length);

INSTRUCTIONS.map(([bits], n) => ({ bits, kind: n + 1 }))
  .sort((one, other) => one.bits.length - other.bits.length)
  .forEach(({ bits, kind }) => {
    const free = 16 - bits.length;
    const first = parseInt(bits, 2) << free;
    KINDS.fill(kind, first, first + (1 << free));
  });

// The loop ends before an instruction that it does not know, before the address `at`, after `most`
// instructions, or after `until` cycles; -> how many instructions it executed.
const LOOP = `
  const RAM = 0x20000000, RAM_BYTES = 264 << 10, FLASH = 0x10, FLASH_MASK = 0xffffff;
  return function run(core, r, memory, most, until, at) {
    const { rom16, flash8, flash16, flash32, ram8, ram16, ram32 } = memory;
    const halfword = (at) => {
      if (at >>> 24 === FLASH) return flash16[(at & FLASH_MASK) >> 1];
      if (((at - RAM) >>> 0) < RAM_BYTES) return ram16[(at - RAM) >> 1];
      return at >>> 0 < 0x4000 ? rom16[at >> 1] : 0xbe00;
    };
    let pc = r[15] & ~1, nz = core.Z ? 0 : core.N ? -1 : 1, c = core.C ? 1 : 0, v = core.V ? 1 : 0;
    let spent = 0, count = 0, a = 0, b = 0;
    run: do {
      const op = halfword(pc);
      switch (KINDS[op]) {
        ${INSTRUCTIONS.map(([, does], n) => `case ${n + 1}: ${does} break;`).join('\n')}
        default: break run;
      }
      pc += 2;
      spent++;
      count++;
    } while (spent < until && count < most && pc !== at);
    r[15] = pc;
    core.N = nz < 0;
    core.Z = nz === 0;
    core.C = !!c;
    core.V = !!v;
    core.cycles += spent;
    memory.spent = spent;
    return count;
  };`;
const run = new Function('KINDS', 'BITS', LOOP)(KINDS, BITS);
const LONGEST = 1 << 20; // cycles

class FastCore {
  constructor(mcu) {
    const { bootrom, flash, sram } = mcu;
    this.core = mcu.core;
    this.clock = mcu.clock;
    this.registers = new Int32Array(mcu.core.registers.buffer);
    this.memory = {
      rom16: new Uint16Array(bootrom.buffer),
      flash8: flash,
      flash16: new Uint16Array(flash.buffer),
      flash32: new Int32Array(flash.buffer),
      ram8: sram,
      ram16: new Uint16Array(sram.buffer),
      ram32: new Int32Array(sram.buffer),
      spent: 0,
    };
  }

  // Executes up to `most` common instructions, until the next alarm is due or `at` is reached;
  // -> how many.
  run(most, nanosPerCycle, at) {
    const { clock, core } = this;
    const left = clock.nextAlarm ? clock.nextAlarm.nanos - clock.nanosCounter : Infinity;
    const until = Math.min(LONGEST, Math.ceil(left / nanosPerCycle));
    return run(core, this.registers, this.memory, most, until, at);
  }

  // The cycles of the last run
  get spent() {
    return this.memory.spent;
  }
}

module.exports = { FastCore };

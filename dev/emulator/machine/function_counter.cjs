// function_counter.cjs - counts the calls of one function, and the cycles in them.
//
// `at` is the address to watch: the function's first instruction, and during a call its return
// address (with the same stack pointer, in case it is recursive).
'use strict';

class FunctionCounter {
  constructor(entry) {
    this.entry = entry;
    this.at = entry;
    this.stack = 0; // stack pointer of the call; 0: no call is active
    this.began = 0;
    this.calls = 0;
    this.cycles = 0;
  }

  // Called before each instruction at `at`.
  look(core) {
    if ((core.PC & ~1) !== this.at) {
      return;
    }
    if (!this.stack) {
      this.calls++;
      this.began = core.cycles;
      this.stack = core.SP;
      this.at = core.LR & ~1;
    } else if (core.SP === this.stack) {
      this.cycles += core.cycles - this.began;
      this.stack = 0;
      this.at = this.entry;
    }
  }
}

module.exports = { FunctionCounter };

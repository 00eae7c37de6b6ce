// apart.cjs - what one function takes, with all that it calls, counted apart from the rest.
//
// `at` is the only place where anything happens next: the function's first instruction, and
// while it runs the one to which it returns, on the stack that it was called with.
'use strict';

class Apart {
  constructor(entry) {
    this.entry = entry;
    this.at = entry;
    this.stack = 0; // 0: it does not run
    this.began = 0;
    this.calls = 0;
    this.cycles = 0;
  }

  // The chip has come to an instruction.
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

module.exports = { Apart };

// clock.cjs - runs the chip in slices of a few milliseconds between Node's own events.
//
// Normally the chip's time follows the wall clock: an idle chip sleeps. If `free`, idle time is
// skipped, and all runs take the same number of cycles.
'use strict';

const SLICE_MS = 4;
const BATCH = 4000; // instructions between two looks at the wall clock
const LONGEST_SLEEP_MS = 50;
const NOWHERE = -1;

class Clock {
  // flush(): pass on what the chip has sent; onReset(): called after a reset; counter: a
  // FunctionCounter or null
  constructor(chip, { free, flush, onReset, counter }) {
    this.chip = chip;
    this.free = free;
    this.flush = flush;
    this.onReset = onReset;
    this.counter = counter;
    this.instructions = 0;
    this.idleNanos = 0;
    this.stopped = false;
    this.sleeping = null;
    this.began = performance.now();
  }

  wallNanos() {
    return (performance.now() - this.began) * 1e6;
  }

  run() {
    this.sleeping = null;
    if (this.stopped) {
      return;
    }
    const began = performance.now();
    let sleep = 0;
    while (!sleep && performance.now() - began < SLICE_MS) {
      if (this.chip.resetWanted) {
        this.flush();
        this.chip.reset();
        this.began = performance.now();
        this.onReset();
      }
      sleep = this.batch();
      if (this.stopped) {
        return;
      }
      if (this.flush()) {
        break;
      }
    }
    if (sleep >= 1) {
      this.sleeping = setTimeout(() => this.run(), sleep);
    } else {
      setImmediate(() => this.run());
    }
  }

  // Executes some instructions; -> milliseconds until the chip has something to do, or 0.
  batch() {
    const { clock, core } = this.chip;
    for (let left = BATCH; left > 0;) {
      if (core.waiting) {
        const idle = clock.nextAlarm ? clock.nextAlarm.nanos - clock.nanosCounter : 1e9;
        if (!this.free) {
          const ahead = clock.nanosCounter + idle - this.wallNanos();
          if (ahead > 0) {
            this.catchUp();
            return Math.min(ahead / 1e6, LONGEST_SLEEP_MS);
          }
        }
        clock.tick(idle);
        this.idleNanos += idle;
        left--;
      } else {
        left -= this.execute(left);
      }
    }
    return 0;
  }

  // Executes up to `most` instructions; -> how many.
  execute(most) {
    const { core, fastCore, nanosPerCycle } = this.chip;
    this.counter?.look(core);
    if (fastCore && !core.interruptsUpdated) {
      const done = fastCore.run(most, nanosPerCycle, this.counter ? this.counter.at : NOWHERE);
      if (done) {
        this.instructions += done;
        this.pass(fastCore.spent * nanosPerCycle);
        return done;
      }
    }
    const cycles = core.executeInstruction();
    this.instructions++;
    this.pass(cycles * nanosPerCycle);
    return 1;
  }

  // Advances the chip's clock and triggers alarms that are due.
  pass(nanos) {
    const { clock } = this.chip;
    const now = clock.nanosCounter + nanos;
    if (clock.nextAlarm && clock.nextAlarm.nanos <= now) {
      clock.tick(nanos);
    } else {
      clock.nanosCounter = now;
    }
  }

  // Advances an idle chip's clock to the wall clock.
  catchUp() {
    const behind = this.wallNanos() - this.chip.clock.nanosCounter;
    if (behind > 0) {
      this.chip.clock.tick(behind);
      this.idleNanos += behind;
    }
  }

  // Called before bytes are sent to the chip.
  wake() {
    if (this.sleeping) {
      clearTimeout(this.sleeping);
      if (!this.free && this.chip.core.waiting) {
        this.catchUp();
      }
      this.sleeping = null;
      setImmediate(() => this.run());
    }
  }
}

module.exports = { Clock };

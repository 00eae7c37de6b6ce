// batch.cjs - runs one script over the raw REPL and prints the counters at its marks.
//
// A script sets a mark by writing a number below 1 << 24 to watchdog scratch register 0
// (0x4005800c). At the end one line of JSON is printed: for each mark [number, cycles,
// instructions, calls and cycles of the counted function], the script's output, and its error.
// Writing 1 << 24 | N types Ctrl-C on the REPL N nanoseconds later.
'use strict';

const { readFileSync } = require('node:fs');

const BOOTED_NANOS = 1e9;
const PROMPT = 'raw REPL; CTRL-B to exit\r\n>';
const ENTER = Buffer.from('\r\x03\x01');
const RUN = Buffer.from('\x04');
const CTRL_C = Buffer.from('\x03');
const TYPE = 1 << 24;

class Batch {
  constructor(script) {
    this.script = readFileSync(script);
    this.heard = '';
    this.state = 'prompt';
    this.marks = [];
  }

  start(chip) {
    chip.clock.createAlarm(() => chip.mcu.uart[0].send(ENTER)).schedule(BOOTED_NANOS);
  }

  mark(tag, clock) {
    if (tag & TYPE) {
      this.typing = clock.chip.clock.createAlarm(() => clock.chip.mcu.uart[0].send(CTRL_C));
      this.typing.schedule(tag & (TYPE - 1));
      return;
    }
    const { calls, cycles } = clock.counter || { calls: 0, cycles: 0 };
    this.marks.push([tag, clock.chip.core.cycles, clock.instructions, calls, cycles]);
  }

  receive(bytes, chip, end) {
    this.heard += bytes.toString('latin1');
    if (this.state === 'prompt' && this.heard.endsWith(PROMPT)) {
      this.state = 'sent';
      this.heard = '';
      chip.mcu.uart[0].send(Buffer.concat([this.script, RUN]));
    } else if (this.state === 'sent' && this.heard.startsWith('OK')) {
      this.state = 'runs';
      this.heard = this.heard.slice(2);
    }
    if (this.state === 'runs' && this.heard.endsWith('\x04>')) {
      this.state = 'done';
      const [output, errors] = this.heard.split('\x04');
      const found = JSON.stringify({ marks: this.marks, output, errors });
      process.stdout.write(found, () => end(errors ? 1 : 0)); // a pipe takes 64 KB at once
    }
  }
}

module.exports = { Batch };

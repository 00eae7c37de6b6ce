// batch.cjs - runs one script over the raw REPL and tells what happened at its marks.
//
// A script marks a moment by writing a number to watchdog scratch register 0
// (0x4005800c). At the end there is one line of JSON: for every mark its number, cycles and
// instructions since the start, and of the function that is counted apart its calls and cycles;
// what the script printed, and its error. Numbers from 1 << 24 on are no marks: so many
// nanoseconds later, without that bit, somebody types Ctrl-C.
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
    const { calls, cycles } = clock.apart || { calls: 0, cycles: 0 };
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

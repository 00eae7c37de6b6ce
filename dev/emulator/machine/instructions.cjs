// instructions.cjs - the instructions that fast_core.cjs executes: the highest bits of the opcode
// and the JavaScript that executes it. If two patterns fit an opcode, the longer one is used.
//
// The code uses `op`, the opcode; `r`, the registers as signed numbers; `pc`, the instruction's
// address; `nz`, whose sign is flag N and which is 0 if flag Z is set; `c` and `v`, the other
// flags; `a` and `b`, temporary; `spent`, to which it adds cycles beyond the first. `break run`
// leaves the instruction to rp2040js; it must come before any change.
'use strict';

const RD = 'r[op & 7]'; // also Rt of loads and stores, Rn of comparisons
const RM = 'r[op >> 3 & 7]'; // also Rn of loads, stores and sums
const RO = 'r[op >> 6 & 7]';
const R8 = 'r[op >> 8 & 7]';
const IMM8 = '(op & 0xff)';
const IMM5 = '(op >> 6 & 31)';
const SP = 'r[13]';

const to = (place) => (place ? `${place} = ` : '');
const logic = (value, place = RD) => `nz = ${to(place)}${value};`;
const sum = (place, x, y) => `a = ${x}; b = ${y}; nz = ${to(place)}(a + b) | 0;
  c = nz >>> 0 < a >>> 0 ? 1 : 0; v = ((a ^ nz) & (b ^ nz)) >>> 31;`;
const difference = (place, x, y) => `a = ${x}; b = ${y}; nz = ${to(place)}(a - b) | 0;
  c = a >>> 0 >= b >>> 0 ? 1 : 0; v = ((a ^ b) & (a ^ nz)) >>> 31;`;
const branch = (condition) => `if (${condition}) { pc += 2 + (op << 24 >> 23); spent++; }`;
const high = (operator) => `a = op >> 4 & 8 | op & 7; b = op >> 3 & 15;
  if (a >= 13 || b === 15) break run;
  r[a] ${operator} r[b];`;

// bytes: width; sign: sign extension, if shorter than a word
const load = (bytes, place, address, sign = '') => `a = (${address}) | 0;
  if (a & ${bytes - 1}) break run;
  if (((a - RAM) >>> 0) < RAM_BYTES) a = ram${bytes * 8}[(a - RAM) >> ${bytes >> 1}];
  else if (a >>> 24 === FLASH) a = flash${bytes * 8}[(a & FLASH_MASK) >> ${bytes >> 1}];
  else break run;
  ${place} = a${sign};
  spent++;`;
const store = (bytes, place, address) => `a = (${address} - RAM) | 0;
  if (a >>> 0 >= RAM_BYTES || a & ${bytes - 1}) break run;
  ram${bytes * 8}[a >> ${bytes >> 1}] = ${place};
  spent++;`;
// Several registers: in RAM, and far enough from its end
const several = (address) => `a = (${address} - RAM) | 0;
  if (a >>> 0 >= RAM_BYTES - 64 || a & 3) break run;
  a >>= 2;`;
const each = (does) => `for (let n = 0; n < 8; n++) { if (op >> n & 1) ${does}; }
  spent += BITS[op & 0xff];`;
const back = `if (!(op >> (op >> 8 & 7) & 1)) ${R8} = RAM + (a << 2);`;

const LSRS = `c = a >>> (b ? b - 1 : 31) & 1; nz = ${RD} = (b ? a >>> b : 0) | 0;`;
const POP = `${several(SP)} b = a + BITS[op & 0xff];
  if (op & 0x100 && ram32[b] >>> 28 === 15) break run;
  ${each('r[n] = ram32[a++]')}
  if (op & 0x100) { pc = (ram32[a++] & ~1) - 2; spent += 2; }
  ${SP} = RAM + (a << 2);`;
const PUSH = `b = BITS[op & 0xff] + (op >> 8 & 1) << 2; ${several(`${SP} - b`)}
  ${SP} -= b; ${each('ram32[a++] = r[n]')}
  if (op & 0x100) ram32[a] = r[14];`;
const BL = `a = halfword(pc + 2);
  if ((a & 0xd000) !== 0xd000) break run;
  r[14] = (pc + 4) | 1; b = op >> 10 & 1;
  pc += 2 + (op << 12 & 0x3ff000 | (b ? 0xff000000 : 0) | (a & 0x7ff) << 1
    | (1 ^ b ^ (a >> 13 & 1)) << 23 | (1 ^ b ^ (a >> 11 & 1)) << 22);
  spent += 2;`;

const INSTRUCTIONS = [
  ['00000', `a = ${RM}; b = ${IMM5}; if (b) c = a >>> (32 - b) & 1; ${logic('a << b')}`], // LSLS
  ['00001', `a = ${RM}; b = ${IMM5}; ${LSRS}`],
  ['00010', `a = ${RM}; b = ${IMM5} || 32; c = a >>> (b - 1) & 1;
    ${logic('a >> (b & 31 || 31)')}`],
  ['0001100', sum(RD, RM, RO)],
  ['0001101', difference(RD, RM, RO)],
  ['0001110', sum(RD, RM, 'op >> 6 & 7')],
  ['0001111', difference(RD, RM, 'op >> 6 & 7')],
  ['00100', logic(IMM8, R8)], // MOVS
  ['00101', difference('', R8, IMM8)], // CMP
  ['00110', sum(R8, R8, IMM8)],
  ['00111', difference(R8, R8, IMM8)],
  ['0100000000', logic(`${RD} & ${RM}`)],
  ['0100000001', logic(`${RD} ^ ${RM}`)],
  ['0100000010', `a = ${RD}; b = ${RM} & 0xff; if (b) c = a >>> (32 - b & 31) & 1;
    ${logic('b < 32 ? a << b : 0')}`],
  ['0100000011', `a = ${RD}; b = ${RM} & 0xff; c = b <= 32 ? a >>> (b - 1 & 31) & 1 : 0;
    ${logic('(b < 32 ? a >>> b : 0) | 0')}`],
  ['0100001000', logic(`${RD} & ${RM}`, '')], // TST
  ['0100001001', difference(RD, '0', RM)], // NEGS
  ['0100001010', difference('', RD, RM)], // CMP
  ['0100001100', logic(`${RD} | ${RM}`)],
  ['0100001101', logic(`Math.imul(${RD}, ${RM})`)],
  ['0100001110', logic(`${RD} & ~${RM}`)],
  ['0100001111', logic(`~${RM}`)],
  ['01000100', high('+=')],
  ['01000110', high('=')],
  ['010001110', `a = r[op >> 3 & 15]; if (op & 7 || a >>> 28 === 15) break run;
    pc = (a & ~1) - 2; spent++;`], // BX
  ['010001111', `a = r[op >> 3 & 15]; if (op & 7) break run;
    r[14] = (pc + 2) | 1; pc = (a & ~1) - 2; spent++;`], // BLX
  ['01001', load(4, R8, `(pc & ~3) + 4 + (${IMM8} << 2)`)],
  ['0101000', store(4, RD, `${RM} + ${RO}`)],
  ['0101001', store(2, RD, `${RM} + ${RO}`)],
  ['0101010', store(1, RD, `${RM} + ${RO}`)],
  ['0101011', load(1, RD, `${RM} + ${RO}`, ' << 24 >> 24')],
  ['0101100', load(4, RD, `${RM} + ${RO}`)],
  ['0101101', load(2, RD, `${RM} + ${RO}`)],
  ['0101110', load(1, RD, `${RM} + ${RO}`)],
  ['0101111', load(2, RD, `${RM} + ${RO}`, ' << 16 >> 16')],
  ['01100', store(4, RD, `${RM} + (${IMM5} << 2)`)],
  ['01101', load(4, RD, `${RM} + (${IMM5} << 2)`)],
  ['01110', store(1, RD, `${RM} + ${IMM5}`)],
  ['01111', load(1, RD, `${RM} + ${IMM5}`)],
  ['10000', store(2, RD, `${RM} + (${IMM5} << 1)`)],
  ['10001', load(2, RD, `${RM} + (${IMM5} << 1)`)],
  ['10010', store(4, R8, `${SP} + (${IMM8} << 2)`)],
  ['10011', load(4, R8, `${SP} + (${IMM8} << 2)`)],
  ['10100', `${R8} = (pc & ~3) + 4 + (${IMM8} << 2);`], // ADR
  ['10101', `${R8} = ${SP} + (${IMM8} << 2);`],
  ['101100000', `${SP} += (op & 0x7f) << 2;`],
  ['101100001', `${SP} -= (op & 0x7f) << 2;`],
  ['1011001000', `${RD} = ${RM} << 16 >> 16;`],
  ['1011001001', `${RD} = ${RM} << 24 >> 24;`],
  ['1011001010', `${RD} = ${RM} & 0xffff;`],
  ['1011001011', `${RD} = ${RM} & 0xff;`],
  ['1011010', PUSH],
  ['1011110', POP],
  ['1011101000', `a = ${RM}; ${RD} = a << 24 | (a & 0xff00) << 8 | a >> 8 & 0xff00 | a >>> 24;`],
  ['11000', `${several(R8)} ${each('ram32[a++] = r[n]')} ${back}`], // STMIA
  ['11001', `b = ${R8}; ${several('b')} ${each('r[n] = ram32[a++]')} ${back}`], // LDMIA
  ['11010000', branch('nz === 0')],
  ['11010001', branch('nz !== 0')],
  ['11010010', branch('c')],
  ['11010011', branch('!c')],
  ['11010100', branch('nz < 0')],
  ['11010101', branch('nz >= 0')],
  ['11011000', branch('c && nz !== 0')],
  ['11011001', branch('!c || nz === 0')],
  ['11011010', branch('nz >>> 31 === v')],
  ['11011011', branch('nz >>> 31 !== v')],
  ['11011100', branch('nz !== 0 && nz >>> 31 === v')],
  ['11011101', branch('nz === 0 || nz >>> 31 !== v')],
  ['11100', 'pc += 2 + (op << 21 >> 20); spent++;'],
  ['11110', BL],
];

module.exports = { INSTRUCTIONS };

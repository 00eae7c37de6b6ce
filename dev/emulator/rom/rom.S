// rom.S - a boot ROM for the emulated RP2040, in place of the chip's own.
//
// The SDK looks up functions by two letters in a table that the vectors point to (RP2040
// datasheet, 2.8.3). rom.c has the functions for bits and memory, the compiler's library those for
// floats. Those for flash stop at a breakpoint, whose number tells the emulator which function to
// execute (machine/chip.cjs).
    .syntax unified
    .cpu cortex-m0plus
    .thumb

    .section .vectors, "ax"
    .word 0x20041f00            // the stack
    .word _hang + 1
    .word _hang + 1
    .word _hang + 1
    .byte 'M', 'u', 1, 3        // version 3
    .hword func_table
    .hword data_table
    .hword table_lookup + 1
    .hword 0

    .text
    .thumb_func
_hang:
    bkpt #0xff
    b _hang

// void *table_lookup(uint16_t *table, uint32_t code)
    .thumb_func
table_lookup:
    uxth r1, r1
1:  ldrh r2, [r0]
    cmp r2, #0
    beq 2f
    ldrh r3, [r0, #2]
    adds r0, #4
    cmp r2, r1
    bne 1b
    mov r0, r3
    bx lr
2:  movs r0, #0
    bx lr

.macro by_emulator name number
    .thumb_func
    .global \name
\name:
    bkpt #\number
    bx lr
.endm
    by_emulator flash_connect 0x11
    by_emulator flash_exit_xip 0x12
    by_emulator flash_erase 0x13
    by_emulator flash_program 0x14
    by_emulator flash_flush 0x15
    by_emulator flash_enter_xip 0x16
    by_emulator usb_boot 0x17
    by_emulator missing 0x18

    .align 2
.macro entry code name
    .ascii "\code"
    .hword \name + 1
.endm
func_table:
    entry P3 rom_popcount
    entry R3 rom_reverse
    entry L3 rom_clz
    entry T3 rom_ctz
    entry MS rom_memset
    entry S4 rom_memset
    entry MC rom_memcpy
    entry C4 rom_memcpy
    entry IF flash_connect
    entry EX flash_exit_xip
    entry RE flash_erase
    entry RP flash_program
    entry FC flash_flush
    entry CX flash_enter_xip
    entry UB usb_boot
    .hword 0, 0
data_table:
    .ascii "SF"
    .hword floats
    .ascii "SD"
    .hword doubles
    .hword 0, 0

// In the order of the chip's ROM. Functions that the SDK does not use are missing.
    .align 2
    .byte 0, 0, 0x20, 0
floats:
    .word __aeabi_fadd, __aeabi_fsub, __aeabi_fmul, __aeabi_fdiv
    .word missing, missing, missing, __aeabi_f2iz
    .word rom_float2fix, __aeabi_f2uiz, rom_float2ufix, __aeabi_i2f
    .word rom_fix2float, __aeabi_ui2f, rom_ufix2float, missing
    .word missing, missing, missing, missing
    .word missing, missing, missing, __aeabi_l2f
    .word missing, __aeabi_ul2f, missing, __aeabi_f2lz
    .word missing, __aeabi_f2ulz, missing, __aeabi_f2d
    .align 2
    .byte 0, 0, 0x20, 0
doubles:
    .word __aeabi_dadd, __aeabi_dsub, __aeabi_dmul, __aeabi_ddiv
    .word missing, missing, missing, __aeabi_d2iz
    .word missing, __aeabi_d2uiz, missing, __aeabi_i2d
    .word missing, __aeabi_ui2d
    .rept 18
    .word missing
    .endr

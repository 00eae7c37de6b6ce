// rom.c - the boot ROM's functions for bits, memory and fixed-point floats.
#include <stddef.h>
#include <stdint.h>

uint32_t rom_popcount(uint32_t value) {
    uint32_t count = 0;
    for (; value; value &= value - 1) {
        count++;
    }
    return count;
}

uint32_t rom_reverse(uint32_t value) {
    uint32_t reversed = 0;
    for (int bit = 0; bit < 32; bit++) {
        reversed = reversed << 1 | (value & 1);
        value >>= 1;
    }
    return reversed;
}

uint32_t rom_clz(uint32_t value) {
    uint32_t count = 32;
    for (uint32_t step = 16; step; step >>= 1) {
        if (value >> step) {
            count -= step;
            value >>= step;
        }
    }
    return count - value;
}

uint32_t rom_ctz(uint32_t value) {
    uint32_t count = 0;
    if (!value) {
        return 32;
    }
    for (; !(value & 1); value >>= 1) {
        count++;
    }
    return count;
}

void *rom_memset(void *to, int byte, uint32_t n) {
    uint8_t *bytes = to;
    uint32_t word = (byte & 0xff) * 0x01010101u;
    while (n && ((uintptr_t)bytes & 3)) {
        *bytes++ = byte;
        n--;
    }
    uint32_t *words = (uint32_t *)bytes;
    for (; n >= 16; n -= 16, words += 4) {
        words[0] = words[1] = words[2] = words[3] = word;
    }
    for (; n >= 4; n -= 4) {
        *words++ = word;
    }
    bytes = (uint8_t *)words;
    while (n--) {
        *bytes++ = byte;
    }
    return to;
}

void *rom_memcpy(void *to, const void *from, uint32_t n) {
    uint8_t *bytes = to;
    const uint8_t *source = from;
    if ((((uintptr_t)bytes ^ (uintptr_t)source) & 3) == 0) {
        while (n && ((uintptr_t)bytes & 3)) {
            *bytes++ = *source++;
            n--;
        }
        uint32_t *words = (uint32_t *)bytes;
        const uint32_t *sources = (const uint32_t *)source;
        for (; n >= 16; n -= 16, words += 4, sources += 4) {
            uint32_t a = sources[0], b = sources[1], c = sources[2], d = sources[3];
            words[0] = a;
            words[1] = b;
            words[2] = c;
            words[3] = d;
        }
        for (; n >= 4; n -= 4) {
            *words++ = *sources++;
        }
        bytes = (uint8_t *)words;
        source = (const uint8_t *)sources;
    }
    while (n--) {
        *bytes++ = *source++;
    }
    return to;
}

// value * 2 ** exponent
static float scaled(float value, int exponent) {
    union {
        float number;
        uint32_t bits;
    } both = {value};
    int now = both.bits >> 23 & 255;
    if (now == 0 || now == 255) {
        return value;
    }
    now += exponent;
    if (now <= 0) {
        both.bits &= 0x80000000u;
    } else if (now >= 255) {
        both.bits = (both.bits & 0x80000000u) | 0x7f800000u;
    } else {
        both.bits = (both.bits & 0x807fffffu) | (uint32_t)now << 23;
    }
    return both.number;
}

int32_t rom_float2fix(float value, int bits) {
    return (int32_t)scaled(value, bits);
}

uint32_t rom_float2ufix(float value, int bits) {
    return (uint32_t)scaled(value, bits);
}

float rom_fix2float(int32_t value, int bits) {
    return scaled((float)value, -bits);
}

float rom_ufix2float(uint32_t value, int bits) {
    return scaled((float)value, -bits);
}

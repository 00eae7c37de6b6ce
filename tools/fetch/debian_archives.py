"""Debian archives with fixed paths and hashes, for mirrors whose package index cannot be used.

While a mirror is updated, its index may not fit its signature for hours; the archives are there
all the time. debian.py fetches these when apt fails.
"""

# (packages, architecture): {path in Debian's pool: SHA-256}, dependencies included
ARCHIVES: dict[tuple[tuple[str, ...], str], dict[str, str]] = {
    (("micropython",), "i386"): {
        "pool/main/m/micropython/micropython_1.25.0+ds-1_i386.deb": (
            "a72799821cb45442150f8a7f0757bc8e4f9a4b64abccbd837d694a20d6900bb5"
        ),
        "pool/main/g/glibc/libc6_2.41-12+deb13u4_i386.deb": (
            "67bb4b54cf4bb6a380449dfa1852cd9135659f85360caa0e41d312f4b30e573a"
        ),
        "pool/main/g/gcc-14/libgcc-s1_14.2.0-19_i386.deb": (
            "a4c71fd856d2a48a7505a087b4186e3cca23f94603c05e3fb7c799b27e72f761"
        ),
        "pool/main/g/gcc-14/gcc-14-base_14.2.0-19_i386.deb": (
            "cab3cc6782d6cd3445d184ad317bbd8cc46395eb2675ccd75f4b57147469887a"
        ),
        "pool/main/libf/libffi/libffi8_3.4.8-2_i386.deb": (
            "8bafefb38c320ca27796070c881595ce04d900c3b534ac142a494daf1fe1db13"
        ),
        "pool/main/m/mbedtls/libmbedcrypto16_3.6.6-0.1~deb13u1_i386.deb": (
            "aa4698ed436eebf77e3dc9f5c514073bd554109d857d887db5a367dde9a5c377"
        ),
        "pool/main/m/mbedtls/libmbedtls21_3.6.6-0.1~deb13u1_i386.deb": (
            "eb1b20154ce9008aca1d036698ffc12019020a54985d2c5ae3dc1c1c39c9e995"
        ),
        "pool/main/m/mbedtls/libmbedx509-7_3.6.6-0.1~deb13u1_i386.deb": (
            "fe6ba192c9227d30a4cd05a3bdeccdf9ff30d55b27d8ff488126c16dcf727cce"
        ),
    }
}

// The REPL is on UART 0, PPP on UART 1. Half of the 2 MB of flash is for files.
#define MICROPY_HW_BOARD_NAME          "Raspberry Pi Pico (emulated)"
#define MICROPY_HW_FLASH_STORAGE_BYTES (1024 * 1024)
#define MICROPY_HW_ENABLE_UART_REPL    (1)
#define MICROPY_HW_ENABLE_USBDEV       (0)
#define MICROPY_PY_NETWORK_HOSTNAME_DEFAULT "emulated"

// Included by the port though USB is off; Debian's sources come without TinyUSB.
#pragma once

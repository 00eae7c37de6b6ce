// The port includes it although USB is off. Debian's sources lack TinyUSB.
#pragma once

# manifest.py - slotmq frozen into a firmware: `include("lib/manifest.py")` in the board's.
#
# The files are those of package.json, so that there is one list of them. MicroPython's
# build runs this in the folder that it stands in, and provides the functions.
import json

metadata(  # noqa: F821
    description="An MQTT broker in fixed slots.", version="0.1.0", license="MIT"
)
with open("package.json") as file:
    _targets = [target for target, _ in json.load(file)["urls"]]
package("slotmq", files=[target[len("slotmq/") :] for target in _targets])  # noqa: F821

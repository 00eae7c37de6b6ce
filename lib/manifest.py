# manifest.py - slotmq frozen into a firmware: `include("lib/manifest.py")` in the board's.
#
# The files are those of package.json, so that there is one list of them. MicroPython's
# build runs this in the folder that it stands in, and provides the functions. There is no
# metadata() here: a manifest that includes this one may have its own, of which a build takes
# one, and a version in it would be added to every module that is frozen, each with a name more.
import json

with open("package.json") as file:
    _targets = [target for target, _ in json.load(file)["urls"]]
# Without asserts, as on a board's file system; numbers of lines take no heap here.
package("slotmq", files=[target[len("slotmq/") :] for target in _targets], opt=2)  # noqa: F821

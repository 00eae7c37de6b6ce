"""An application of mosquitto_sub and mosquitto_pub: echo_mosquitto.py PORT CA SUB -- PUB"""

import subprocess
import sys

PORT, CA = sys.argv[1:3]
AT = sys.argv.index("--")
SUB, PUB = sys.argv[3:AT], sys.argv[AT + 1 :]
WHERE = ["-h", "localhost", "-p", PORT, *(["--cafile", CA] if CA else [])]

reads = [*SUB, *WHERE, "-q", "1", "-t", "app/kept/+", "-t", "app/in", "-F", "%t %p"]
with subprocess.Popen(reads, stdout=subprocess.PIPE, text=True) as process:
    assert process.stdout
    kept = set()
    for line in process.stdout:
        topic, _, payload = line.rstrip("\n").partition(" ")
        if topic != "app/in":
            kept.add(topic)
            continue
        answer = f"{payload} {len(kept)}"
        subprocess.run([*PUB, *WHERE, "-q", "1", "-t", "app/out", "-m", answer], check=True)

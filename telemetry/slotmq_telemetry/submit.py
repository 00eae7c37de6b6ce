"""The program for spark-submit: `slotmq telemetry` as a file. spark-submit sets the master.

slotmq telemetry pack slotmq.zip
spark-submit --master spark://... --py-files slotmq.zip submit.py ingest HARVEST TABLES
"""

from slotmq_telemetry.command import telemetry
from slotmq_tools.errors import ToolError

if __name__ == "__main__":
    try:
        telemetry()
    except ToolError as error:
        raise SystemExit(f"Error: {error}") from None

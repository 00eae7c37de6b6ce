"""The program for spark-submit: `slotmq telemetry` as a file. spark-submit sets the master.

slotmq telemetry pack slotmq.zip
spark-submit --master spark://... --py-files slotmq.zip submit.py ingest HARVEST TABLES
"""

from slotmq_tools.errors import ToolError
from slotmq_tools.telemetry.command import telemetry

if __name__ == "__main__":
    try:
        telemetry()
    except ToolError as error:
        raise SystemExit(f"Error: {error}") from None

"""Harvest folder and tables in an object store: the same tables as on this computer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from slotmq_telemetry import live, optimize
from slotmq_telemetry.folder import Folder
from slotmq_telemetry.lake import Lake, write
from slotmq_telemetry.schemas import BRONZE, GOLD, QUARANTINE, SILVER
from slotmq_tools.deploy.mqtt_client import Login
from slotmq_tools.errors import ToolError
from telemetry.tests.conftest import A, Lab, cli, identities, recorder

from . import campaign
from .object_store import copied, object_store
from .rows import HERE, Made


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with object_store() as url:
        yield url


def said(*words: str) -> list[str]:
    done = cli("telemetry", *words)
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


def test_tables_in_an_object_store_equal_the_truth(bucket: str, tmp_path: Path) -> None:
    lived = campaign.run(tmp_path / "field", [214, 229])
    harvest, tables = copied(lived.folder, f"{bucket}/field"), f"{bucket}/tables"
    first = said("ingest", harvest, tables)
    assert first[1].startswith("silver: ") and not first[1].startswith("silver: 0")
    made = Made(lived, Lake(tables))
    assert made.wrong() == [] and made.lake.rows(GOLD["traffic"]).num_rows
    assert made.lake.rows(QUARANTINE).num_rows
    for step in ("silver", "gold"):
        assert f"{step}: 0 boards with something new" in said("ingest", harvest, tables)
    board = made.rows("boards")[0]["board"]
    text = f'[{board}]\nname = "far away"'
    Folder(tables).write("boards.toml", lambda file: file.write(text.encode()))
    assert said("build", tables)[1].startswith("gold: 1 board with something new, ")
    assert "far away" in {row["name"] for row in made.rows("boards")}
    said("report", tables, str(tmp_path / "page.html"))
    assert "far away" in (tmp_path / "page.html").read_text("utf-8")
    assert "select" in said("sql", tables)[0] and tables in "".join(said("sql", tables))
    assert said("optimize", tables, "--hours", "0")[0].startswith("bronze: ")
    assert len(DeltaTable(f"{tables}/{SILVER['messages'].name}").to_pandas()) == len(
        lived.all("messages")
    )


def test_of_two_writers_the_second_fails_at_its_commit(bucket: str) -> None:
    """There are no locks. Whoever has read the table before somebody else's commit of the same
    harvest, or of the same board, changes nothing."""
    one, other = (Lake(f"{bucket}/two") for _ in range(2))
    rows = pa.table({field.name: pa.array([], field.type) for field in BRONZE.schema})
    with one.locked("bronze"):
        one.commit(BRONZE, [write(one.folder, BRONZE, rows, "1", "a")], (), {"harvest": 1})
    with one.locked("bronze"), other.locked("bronze"):
        for lake in (one, other):
            assert lake.marked(BRONZE, "harvest") == 1
        new = write(one.folder, BRONZE, rows, "2", "a")
        one.commit(BRONZE, [new], ["board=a/1.parquet"], {"harvest": 2})
        for removed, marks in (((), {"harvest": 2}), (["board=a/1.parquet"], {})):
            with pytest.raises(ToolError, match="two/bronze: Failed to commit"):
                other.commit(BRONZE, [new], removed, marks)
    assert one.files(BRONZE) == ["board=a/2.parquet"]


def test_live_writes_into_an_object_store(bucket: str, lab: Lab) -> None:
    """A segment that is still written, more of it, and nothing new."""
    one = recorder(A, 30)
    boards, lake = lab.attach(one), Lake(f"{bucket}/live")
    for count in (0, 5, 0):
        for _ in range(count):
            one.message("room/late", b"1.5")
        boards.published()
        live.run(live.Field([lab.field.address], Login()), lab.path, lake, HERE, None)
        rows = lake.rows(BRONZE).to_pylist()
        found = sorted((row["board"], row["boot"], row["seq"]) for row in rows)
        assert found == sorted(identities(one))
    assert sum(lake.rows(GOLD["boards"])["messages"].to_pylist()) == 35


def test_a_bucket_that_is_not_there_is_one_line(bucket: str) -> None:
    for words in (["ingest", "s3://nobody/field", "tables"], ["build", "s3://nobody/tables"]):
        done = cli("telemetry", *words)
        assert done.exit_code == 1 and done.output.startswith("Error: "), done.output
        assert done.output.count("\n") == 1 and "\x1b" not in done.output
    assert optimize.compact(HERE, Lake(f"{bucket}/nothing")) == 0

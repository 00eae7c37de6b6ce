"""What has a time of the broker's clock moves with the clock's zero: no attribute is forgotten."""

import ast
from pathlib import Path

LIB = Path(__file__).parents[2] / "lib/slotmq"
STAYS = {"failure_until"}  # access/login.py: a time of before the move counts as forgotten


def is_time(value: ast.expr | None) -> bool:
    """Is the value `now`, or so much before or after it? A difference of two times is none."""
    match value:
        case ast.Name(id="now") | ast.Attribute(attr="now"):
            return True
        case ast.BinOp(left, ast.Sub(), right):
            return is_time(left) and not is_time(right)
        case ast.BinOp(left, ast.Add(), right) | ast.IfExp(body=left, orelse=right):
            return is_time(left) or is_time(right)
        case ast.BoolOp(values=values) | ast.Call(func=ast.Name(id="max" | "min"), args=values):
            return any(is_time(each) for each in values)
    return False


def attributes(targets: list[ast.expr]) -> set[str]:
    """Attributes, or columns that are attributes, to which something is assigned."""
    places = [each.value if isinstance(each, ast.Subscript) else each for each in targets]
    return {place.attr for place in places if isinstance(place, ast.Attribute)}


def test_each_attribute_that_gets_a_time_is_moved() -> None:
    stored, moved = set(), set()
    for path in LIB.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and path.name == "epoch.py":
                moved.add(node.attr)
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_TIMES":
                moved |= set(ast.literal_eval(node.value))  # what shift() of the file moves
            elif isinstance(node, ast.Assign) and is_time(node.value):
                stored |= attributes(node.targets)
    assert {"saved", "next_tick", "suback_due", "last_activity"} <= stored  # it finds them
    assert stored - moved == STAYS, "see lib/slotmq/tables/epoch.py"

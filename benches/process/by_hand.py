"""The migrations by hand, with deltalake: `by-hand` or `ten-by-hand`, and the table's folder."""

import sys
import time

from deltalake import DeltaTable, Field
from deltalake.schema import PrimitiveType

name, folder = sys.argv[1:]
started = time.perf_counter_ns()
table = DeltaTable(folder)
for n in range(1, 2 if name == "by-hand" else 11):
    column = "tenant" if n == 1 else f"more_{n}"
    own = {"team.owner": "sink"} if n == 1 else {"team.step": str(n)}
    table.alter.add_columns(Field(column, PrimitiveType("string"), nullable=True))
    table.alter.set_table_properties(
        {**own, "my_sink.schema_version": str(1 + n)}, raise_if_not_exists=False
    )
taken = time.perf_counter_ns() - started
with open("/proc/self/status") as status:
    peak = next(line.split()[1] for line in status if line.startswith("VmHWM:"))
print(taken, peak)

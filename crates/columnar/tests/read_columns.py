"""Prints Parquet and Arrow files as pyarrow reads them: an oracle for our writers.

usage: read_columns.py FILE...

A JSON list with an object per file: columns [name, type, unit, key], rows, and the schema's metadata. Doubles are printed as the integer of their bits,
because a decimal may be read as the double beside.
"""

import json
import struct
import sys

import pyarrow
import pyarrow.parquet


def text(metadata):
    return {key.decode(): value.decode() for key, value in (metadata or {}).items()}


def cell(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0] if isinstance(value, float) else value


def read(path):
    if path.endswith(".parquet"):
        table = pyarrow.parquet.read_table(path)
    else:
        table = pyarrow.ipc.open_file(path).read_all()
    table.validate(full=True)
    columns = []
    for field in table.schema:
        about = text(field.metadata)
        columns.append([field.name, str(field.type), about["unit"], about["key"]])
    rows = [[cell(value) for value in row.values()] for row in table.to_pylist()]
    return {"columns": columns, "rows": rows, "metadata": text(table.schema.metadata)}


json.dump([read(path) for path in sys.argv[1:]], sys.stdout)

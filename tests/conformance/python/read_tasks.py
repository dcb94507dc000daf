"""Reads files of tasks with pyarrow and with datasets; prints schema, codecs and a digest of every row of each.

usage: read_tasks.py FILE...
"""

import hashlib
import json
import sys
import tempfile

import pyarrow.parquet as pq
from datasets import load_dataset


def report_of(path):
    kind = "parquet" if path.endswith(".parquet") else "json"
    with tempfile.TemporaryDirectory() as cache:
        dataset = load_dataset(kind, data_files=path, split="train", cache_dir=cache)
        rows = [dict(row) for row in dataset]
        report = {
            "columns": dataset.column_names,
            "rows": [{**row, "prompt": hashlib.sha256(str(row["prompt"]).encode()).hexdigest()} for row in rows],
            "roles": [
                [message["role"] for message in (json.loads(row["prompt"]) if isinstance(row["prompt"], str) else row["prompt"])]
                for row in rows
            ],
        }
    if kind == "parquet":
        file = pq.ParquetFile(path)
        table = file.read()
        group = file.metadata.row_group(0)
        report |= {
            "schema": [[field.name, str(field.type), field.nullable] for field in file.schema_arrow],
            "compression": sorted({group.column(index).compression for index in range(group.num_columns)}),
            "arrow_equals_datasets": table.to_pylist() == rows,
        }
    return report


print(json.dumps([report_of(path) for path in sys.argv[1:]]))

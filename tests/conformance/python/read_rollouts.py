"""Opens folders of exported rollouts as their readers do, and tells as a JSON list what each of them saw.

usage: read_rollouts.py KIND=FOLDER...      KIND: parquet, jsonl or hf
Readers: DuckDB (SQL over all files), pandas with pyarrow, and Hugging Face `datasets` (streamed and whole).
"""

import glob
import json
import os
import sys
import tempfile

import datasets
import duckdb
import pandas
import pyarrow.parquet

datasets.disable_progress_bars()


def by_duckdb(pattern, kind):
    connection = duckdb.connect()
    reader = "read_json_auto" if kind == "jsonl" else "read_parquet"
    relation = f"{reader}('{pattern}')"
    rows = connection.sql(f"SELECT count(*) FROM {relation}").fetchone()[0]
    columns = connection.sql(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    return connection, relation, {"rows": rows, "columns": {name: str(type) for name, type, *_ in columns}}


def by_pandas(files, kind):
    if kind == "jsonl":
        frame = pandas.concat([pandas.read_json(file, lines=True) for file in files])
    else:
        frame = pandas.concat([pandas.read_parquet(file, engine="pyarrow") for file in files])
    return {"rows": len(frame), "columns": list(frame.columns), "lens": lens_of(frame)}


def lens_of(frame):
    """What the lens columns say, by pandas alone; None for files without them."""
    if "lens_reward" not in frame.columns:
        return None
    counted = frame[frame["lens_counted"].eq(True)]
    return {
        "counted": len(counted),
        "mean": counted["lens_reward"].mean(),
        "solved": int(frame["lens_success"].eq(True).sum()),
        "unsolved": int(frame["lens_success"].eq(False).sum()),
    }


def by_arrow(files):
    codecs, schema, footer = set(), None, None
    for file in files:
        metadata = pyarrow.parquet.ParquetFile(file).metadata
        for group in range(metadata.num_row_groups):
            for column in range(metadata.num_columns):
                codecs.add(metadata.row_group(group).column(column).compression)
        schema = pyarrow.parquet.read_schema(file)
        footer = {key.decode(): value.decode() for key, value in (metadata.metadata or {}).items() if key.startswith(b"palestra")}
    return {"codecs": sorted(codecs), "schema": {field.name: str(field.type) for field in schema}, "footer": footer}


def by_datasets(files, folder, kind):
    with tempfile.TemporaryDirectory() as cache:
        if kind == "hf":
            whole = datasets.load_dataset(folder, split="train", cache_dir=cache)
            streamed = datasets.load_dataset(folder, split="train", streaming=True, cache_dir=cache)
        else:
            loader = "json" if kind == "jsonl" else "parquet"
            whole = datasets.load_dataset(loader, data_files=files, split="train", cache_dir=cache)
            streamed = datasets.load_dataset(loader, data_files=files, split="train", streaming=True, cache_dir=cache)
        first = whole[0] if len(whole) else None
        ids = [row.get("rollout_id") for row in whole]
        same = sum(1 for _ in streamed) == len(whole)
        return {"rows": len(whole), "columns": whole.column_names, "ids": ids, "first": first, "streamed_equals_whole": same}


def report_of(kind, folder):
    files = sorted(glob.glob(os.path.join(folder, "data", "*")))
    connection, relation, duck = by_duckdb(os.path.join(folder, "data", "*"), kind)
    report = {"duckdb": duck, "pandas": by_pandas(files, kind), "datasets": by_datasets(files, folder, kind)}
    if kind != "jsonl":
        report["arrow"] = by_arrow(files)
    if "messages" in duck["columns"] and "reward" in duck["columns"] and kind != "jsonl":
        # What a curator asks: rewards by step with provenance, and calls by tool out of the nested messages.
        report["sql"] = {
            "by_step": connection.sql(
                f"SELECT step, step_prov, count(*), count(reward), avg(reward) FROM {relation} GROUP BY ALL ORDER BY step"
            ).fetchall(),
            "tools": connection.sql(
                f"SELECT m.name, count(*) FROM (SELECT unnest(messages) AS m FROM {relation}) WHERE m.type = 'tool_call' GROUP BY ALL ORDER BY 1"
            ).fetchall(),
            "json": connection.sql(f"SELECT DISTINCT CAST(task_spec->>'seed' AS INT) AS seed FROM {relation} ORDER BY seed").fetchall(),
        }
    return report


print(json.dumps([report_of(*argument.split("=", 1)) for argument in sys.argv[1:]], default=str))

"""Reads the lake from S3 alone: the SQL of docs/lake.md with DuckDB, and the Hive partitions with pyarrow; prints what both saw.

usage: read_lake.py ENDPOINT(host:port) BUCKET KEY SECRET LAKE.md
"""

import json
import pathlib
import re
import sys

import duckdb
import duckdb_extension_httpfs
import pyarrow.dataset
import pyarrow.fs

endpoint, bucket, key, secret, document = sys.argv[1:]

connection = duckdb.connect()
# The extension as its package carries it: the same signed file that INSTALL would fetch.
extension = next(pathlib.Path(duckdb_extension_httpfs.__file__).parent.rglob("httpfs.duckdb_extension"))
connection.execute(f"LOAD '{extension}'")

answers = []
for block in re.findall(r"```sql\n(.*?)```", pathlib.Path(document).read_text(), re.S):
    block = block.replace("my-bucket", bucket).replace("127.0.0.1:9000", endpoint).replace("'key'", f"'{key}'").replace("'secret'", f"'{secret}'")
    block = re.sub(r"^(INSTALL|LOAD) httpfs;\n", "", block, flags=re.M)
    result = connection.execute(block)
    columns = [column[0] for column in result.description or []]
    answers.append({"columns": columns, "rows": [list(row) for row in result.fetchall()] if columns else []})

types = dict(connection.execute("SELECT column_name, column_type FROM (DESCRIBE rollouts)").fetchall())
everything = connection.execute("SELECT rollout_id, org, run_name, step, reward FROM rollouts ORDER BY rollout_id").fetchall()
files = connection.execute(
    f"SELECT count(DISTINCT filename) FROM read_parquet('s3://{bucket}/lake/*/*/*/*.parquet', filename = true)"
).fetchone()[0]

s3 = pyarrow.fs.S3FileSystem(endpoint_override=endpoint, scheme="http", access_key=key, secret_key=secret, region="us-east-1")
lake = pyarrow.dataset.dataset(f"{bucket}/lake", filesystem=s3, format="parquet", partitioning="hive")
table = lake.to_table(columns=["rollout_id", "org", "run", "step", "reward"])
report = {
    "answers": answers,
    "types": types,
    "everything": [list(row) for row in everything],
    "files": files,
    "arrow": {"rows": table.num_rows, "schema": {field.name: str(field.type) for field in table.schema}, "codec": None},
}
fragment = next(iter(lake.get_fragments()))
report["arrow"]["codec"] = fragment.metadata.row_group(0).column(0).compression
print(json.dumps(report, default=str))

-- The lake: Parquet files on the object store from which DuckDB or Spark read an organisation without this database (docs/lake.md).
-- How a run was when its files were last compared with it; `took_ms`: a look at a large run is not taken all the time.
CREATE TABLE "lake_runs" (
  "run_seq" INTEGER NOT NULL PRIMARY KEY,
  "version" BIGINT NOT NULL,
  "unsealed" BOOLEAN NOT NULL,
  "took_ms" INTEGER NOT NULL,
  "looked_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP
);
-- One file: the sealed rollouts of a run and step (-1 = not known) of 65 536 places in the order of arrival.
CREATE TABLE "lake_parts" (
  "run_seq" INTEGER NOT NULL,
  "step" INTEGER NOT NULL,
  "part" INTEGER NOT NULL,
  "blob_key" TEXT NOT NULL,
  "fingerprint" TEXT NOT NULL,
  "rows" INTEGER NOT NULL,
  "bytes" BIGINT NOT NULL,
  "written_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
  PRIMARY KEY ("run_seq", "step", "part")
);

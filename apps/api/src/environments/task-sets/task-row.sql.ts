import { setImmediate } from 'node:timers/promises';
import type pg from 'pg';
import { type Message, PalestraError, parseJson, type Split, type SplitType, type TaskSpec } from '@palestra/protocol';
import type { TaskPosition } from '@palestra/session';
import { specDigest } from './canonical-json.ts';
import { taskFileError } from './task-record.ts';
import type { ParsedTaskRow } from './task-rows.file.ts';

const UNIQUE_VIOLATION = '23505';
/** Small, so that other requests run between batches. */
const BATCH_ROWS = 500;
const BATCH_CHARACTERS = 2_000_000;

/** One statement a batch. Plan: Function Scan on unnest; Insert on task_rows. No table is read but for the foreign key. */
const INSERT = `
INSERT INTO task_rows (split_id, index, task_id, spec, spec_hash, prompt)
SELECT $1, r.index, r.task_id, r.spec, r.spec_hash, r.prompt
FROM unnest($2::int[], $3::text[], $4::text[], $5::bytea[], $6::text[]) AS r(index, task_id, spec, spec_hash, prompt)`;

/** Stores the rows of a split in their order. Throws `invalid_task_file` for a repeated id. `file`: the file name in errors. */
export async function storeRows(client: pg.PoolClient, splitId: number, rows: AsyncIterable<ParsedTaskRow>, file: string): Promise<void> {
  let batch: ParsedTaskRow[] = [];
  let characters = 0;
  let stored = 0;
  const flush = async () => {
    await insert(client, splitId, stored, batch, file);
    stored += batch.length;
    [batch, characters] = [[], 0];
  };
  for await (const row of rows) {
    batch.push(row);
    characters += row.spec.length + (row.prompt?.length ?? 0);
    if (batch.length >= BATCH_ROWS || characters >= BATCH_CHARACTERS) await flush();
  }
  if (batch.length > 0) await flush();
}

async function insert(client: pg.PoolClient, splitId: number, first: number, batch: ParsedTaskRow[], file: string) {
  const columns = [
    batch.map((_, offset) => first + offset),
    batch.map(({ taskId }) => taskId),
    batch.map(({ spec }) => spec),
    batch.map(({ specHash }) => (specHash === null ? null : Buffer.from(specHash, 'hex'))),
    batch.map(({ prompt }) => prompt),
  ];
  try {
    await client.query({ name: 'task-rows', text: INSERT, values: [splitId, ...columns] });
  } catch (error) {
    if ((error as { code?: unknown }).code !== UNIQUE_VIOLATION) throw error;
    const detail = (error as { detail?: string }).detail ?? '';
    const taskId = /\)=\(\d+, (.*)\)/s.exec(detail)?.[1];
    const repeated = batch.findLast((row) => row.taskId === taskId);
    throw taskFileError(
      file,
      repeated?.where ?? null,
      `the id ${JSON.stringify(taskId ?? '')} is repeated; ids must be unique in a split`,
      error,
    );
  }
}

export interface StoredSplit extends Split {
  id: number;
  num_tasks: number;
}

/** Plan: Index Scan using task_splits_task_set_id_name_key. */
export async function readSplits(pool: pg.Pool, taskSetId: string): Promise<StoredSplit[]> {
  const { rows } = await pool.query<StoredSplit & { type: SplitType }>(
    'SELECT id, name, type, num_tasks FROM task_splits WHERE task_set_id = $1 ORDER BY id',
    [taskSetId],
  );
  return rows;
}

/** Maximum of tasks per request, bytes: they are parsed and sent in one response. */
const MAX_READ_BYTES = 64 * 1024 * 1024;
/** Tasks that are parsed before other requests run. */
const PARSE_BATCH = 200;

/**
 * The specifications from `start` to before `stop`. Throws `tasks_not_listable` when they are too large together. Plan: Index Scan using
 * task_rows_pkey twice, for the requested rows; their sizes are read without their texts.
 */
export async function readSpecs(pool: pg.Pool, splitId: number, start: number, stop: number): Promise<TaskSpec[]> {
  const range = 'split_id = $1 AND index >= $2 AND index < $3';
  const { rows } = await pool.query<{ spec: string }>({
    name: 'task-specs',
    text: `SELECT spec FROM task_rows WHERE ${range} AND (SELECT sum(octet_length(spec)) <= $4 FROM task_rows WHERE ${range}) ORDER BY index`,
    values: [splitId, start, stop, MAX_READ_BYTES],
  });
  if (rows.length === 0) await assertNoRows(pool, splitId, start, stop);
  const specs: TaskSpec[] = [];
  for (const { spec } of rows) {
    specs.push(parseJson(spec));
    if (specs.length % PARSE_BATCH === 0) await setImmediate();
  }
  return specs;
}

async function assertNoRows(pool: pg.Pool, splitId: number, start: number, stop: number): Promise<void> {
  const text = 'SELECT FROM task_rows WHERE split_id = $1 AND index >= $2 AND index < $3 LIMIT 1';
  const { rowCount } = await pool.query({ name: 'task-any', text, values: [splitId, start, stop] });
  if (rowCount === 0) return;
  const detail = `These tasks have more than ${MAX_READ_BYTES / 1024 / 1024} MiB together. Request fewer tasks, or one by its index.`;
  throw new PalestraError('tasks_not_listable', { detail });
}

/** Plan: Index Scan using task_rows_pkey, one row. */
export async function readPrompt(pool: pg.Pool, splitId: number, index: number): Promise<Message[] | null> {
  const { rows } = await pool.query<{ prompt: string | null }>({
    name: 'task-prompt',
    text: 'SELECT prompt FROM task_rows WHERE split_id = $1 AND index = $2',
    values: [splitId, index],
  });
  const prompt = rows[0]?.prompt ?? null;
  return prompt === null ? null : (parseJson(prompt) as Message[]);
}

/** Plan: Index Scan using task_rows_split_id_spec_hash_idx for each of the few splits; Limit. */
export async function findBySpec(pool: pg.Pool, taskSetId: string, spec: TaskSpec): Promise<TaskPosition | null> {
  return findTask(pool, 'spec_hash', taskSetId, specDigest(spec));
}

/** Plan: Index Scan using task_rows_split_id_task_id_key for each of the few splits; Limit. */
export async function findByTaskId(pool: pg.Pool, taskSetId: string, taskId: string): Promise<TaskPosition | null> {
  return taskId.includes('\0') ? null : findTask(pool, 'task_id', taskSetId, taskId);
}

async function findTask(
  pool: pg.Pool,
  column: 'spec_hash' | 'task_id',
  taskSetId: string,
  value: string | Buffer,
): Promise<TaskPosition | null> {
  const { rows } = await pool.query<TaskPosition>({
    name: `task-by-${column}`,
    text: `SELECT s.name AS split, r.index FROM task_splits s JOIN task_rows r ON r.split_id = s.id
           WHERE s.task_set_id = $1 AND r.${column} = $2 ORDER BY s.id, r.index LIMIT 1`,
    values: [taskSetId, value],
  });
  return rows[0] ?? null;
}

import { Injectable } from '@nestjs/common';
import { TimeSlice } from '@palestra/kit';
import { type FailureQuery, PalestraError, STOP_REASONS } from '@palestra/protocol';
import { LRUCache } from 'lru-cache';
import { MESSAGE_FLAGS, ROLLOUT_FLAGS } from '@palestra/rollouts';
import { Database } from '../../platform/database/database.ts';
import { wordOf } from '../../store/vocabulary-codes.ts';
import { type StoredMessageRow, TranscriptReader } from '../../store/storage/transcript-reader.service.ts';
import { type FailureKey, fingerprint, normaliseError } from './failure-fingerprint.ts';
import { type FailedRow, selectFailed } from './run-insights.sql.ts';
import type { RunScope } from '../run-scope.ts';

const FLAGS = ROLLOUT_FLAGS.tool_error | ROLLOUT_FLAGS.env_error | ROLLOUT_FLAGS.infra_error | ROLLOUT_FLAGS.parse_error;
/** Bounds: failed rollouts of one answer, and newest rollouts among which they are searched. */
const MAX_FAILED = 500;
const SEARCHED = 50_000;
/** Bounds of the transcripts that one request has in memory. One transcript is always read. */
const READ_ROLLOUTS = 100;
const READ_BYTES = 4 * 1024 * 1024;
/** Milliseconds for reading messages. A request that needs longer fails, and the next one continues from the cache. */
const READ_MS = 20_000;
const MAX_CACHED = 20_000;
const EXAMPLES = 5;

/** Failed rollouts, clustered by their error. */
@Injectable()
export class RunFailuresService {
  /** By rollout and revision. */
  readonly #keys = new LRUCache<string, FailureKey>({ max: MAX_CACHED });

  constructor(
    private readonly database: Database,
    private readonly transcripts: TranscriptReader,
  ) {}

  async list(run: RunScope, { steps, limit }: FailureQuery) {
    const rows = await selectFailed(
      this.database.pool,
      run.seq,
      steps?.from ?? -1,
      steps?.to ?? 2_147_483_647,
      FLAGS,
      MAX_FAILED,
      SEARCHED,
    );
    const keys = new Map(rows.map((row) => [row, this.#keys.get(nameOf(row))]));
    const unread = rows.filter((row) => keys.get(row) === undefined);
    const deadline = performance.now() + READ_MS;
    // Every rollout is read, however long it takes: counts that depend on the time change between two loads.
    for (let at = 0; at < unread.length;) {
      if (performance.now() > deadline) throw new PalestraError('too_expensive');
      const batch = batchOf(unread, at);
      at += batch.length;
      for (const [row, key] of await this.#read(batch)) {
        keys.set(row, key);
        this.#keys.set(nameOf(row), key);
      }
    }
    const found = rows.map((row) => ({ row, key: keys.get(row)! }));
    return { failures: clusters(found).slice(0, limit), looked_at: rows.length, read: rows.length, incomplete: false };
  }

  async #read(rows: readonly FailedRow[]): Promise<Map<FailedRow, FailureKey>> {
    const messages = await this.transcripts.messagesOfMany(rows);
    const keys = new Map<FailedRow, FailureKey>();
    const slice = new TimeSlice();
    for (const row of rows) {
      if (slice.isOver) await slice.renew();
      keys.set(row, keyOf(row, messages.get(row.seq) ?? []));
    }
    return keys;
  }
}

const nameOf = ({ seq, revision }: FailedRow): string => `${seq} ${revision}`;

function batchOf(rows: readonly FailedRow[], from: number): FailedRow[] {
  let to = from + 1;
  for (let { bytes } = rows[from]!; to < rows.length && to - from < READ_ROLLOUTS; to += 1) {
    bytes += rows[to]!.bytes;
    if (bytes > READ_BYTES) break;
  }
  return rows.slice(from, to);
}

function keyOf(row: FailedRow, messages: readonly StoredMessageRow[]): FailureKey {
  const failed = messages.findLast(({ flags }) => flags & (MESSAGE_FLAGS.error | MESSAGE_FLAGS.parseError));
  const call = messages.findLast(({ type, name }) => type === 'tool_call' && name !== null);
  const stop = wordOf(STOP_REASONS, row.stop) ?? 'unknown';
  return { error: failed ? normaliseError(failed.content ?? '') : null, tool: call?.name ?? null, stop };
}

function clusters(keys: readonly { row: FailedRow; key: FailureKey }[]) {
  const byPrint = new Map<string, { key: FailureKey; rows: FailedRow[] }>();
  for (const { row, key } of keys) {
    const print = fingerprint(key);
    const cluster = byPrint.get(print) ?? { key, rows: [] };
    byPrint.set(print, cluster);
    cluster.rows.push(row);
  }
  return [...byPrint]
    .map(([print, { key, rows }]) => {
      const rewards = rows.flatMap(({ reward }) => reward ?? []);
      const steps = rows.flatMap(({ step }) => step ?? []);
      return {
        fingerprint: print,
        ...key,
        count: rows.length,
        rollouts: rows.slice(0, EXAMPLES).map(({ id }) => id),
        first_step: steps.length === 0 ? null : Math.min(...steps),
        last_step: steps.length === 0 ? null : Math.max(...steps),
        mean_reward: rewards.length === 0 ? null : rewards.reduce((a, b) => a + b, 0) / rewards.length,
      };
    })
    .toSorted((a, b) => b.count - a.count || (a.fingerprint < b.fingerprint ? -1 : 1));
}

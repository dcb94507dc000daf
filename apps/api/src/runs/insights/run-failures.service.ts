import { Injectable } from '@nestjs/common';
import { type FailureQuery, PalestraError, STOP_REASONS } from '@palestra/protocol';
import { LRUCache } from 'lru-cache';
import { MESSAGE_FLAGS, ROLLOUT_FLAGS } from '@palestra/rollouts';
import { Database } from '../../platform/database/database.ts';
import { wordOf } from '../../store/vocabulary-codes.ts';
import { TranscriptReader } from '../../store/storage/transcript-reader.service.ts';
import { type FailureKey, fingerprint, normaliseError } from './failure-fingerprint.ts';
import { type FailedRow, selectFailed } from './run-insights.sql.ts';
import type { RunScope } from '../run-scope.ts';

const FLAGS = ROLLOUT_FLAGS.tool_error | ROLLOUT_FLAGS.env_error | ROLLOUT_FLAGS.infra_error | ROLLOUT_FLAGS.parse_error;
/** Bounds: failed rollouts of one answer, and newest rollouts among which they are searched. */
const MAX_FAILED = 500;
const SEARCHED = 50_000;
/** Transcripts that one request reads at the same time. */
const LANES = 8;
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
    const deadline = performance.now() + READ_MS;
    const keys: { row: FailedRow; key: FailureKey }[] = [];
    // Every rollout is read, however long it takes: counts that depend on the time change between two loads.
    for (let at = 0; at < rows.length; at += LANES) {
      if (performance.now() > deadline) throw new PalestraError('too_expensive');
      keys.push(...(await Promise.all(rows.slice(at, at + LANES).map(async (row) => ({ row, key: await this.#cachedKeyOf(row) })))));
    }
    return { failures: clusters(keys).slice(0, limit), looked_at: rows.length, read: rows.length, incomplete: false };
  }

  async #cachedKeyOf(row: FailedRow): Promise<FailureKey> {
    const name = `${row.seq} ${row.revision}`;
    const key = this.#keys.get(name) ?? (await this.#keyOf(row));
    this.#keys.set(name, key);
    return key;
  }

  async #keyOf(row: FailedRow): Promise<FailureKey> {
    const messages = await this.transcripts.messages(row);
    const failed = messages.findLast(({ flags }) => flags & (MESSAGE_FLAGS.error | MESSAGE_FLAGS.parseError));
    const call = messages.findLast(({ type, name }) => type === 'tool_call' && name !== null);
    const stop = wordOf(STOP_REASONS, row.stop) ?? 'unknown';
    return { error: failed ? normaliseError(failed.content ?? '') : null, tool: call?.name ?? null, stop };
  }
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

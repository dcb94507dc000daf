import { Injectable } from '@nestjs/common';
import { type FailureQuery, STOP_REASONS } from '@palestra/protocol';
import { MESSAGE_FLAGS, ROLLOUT_FLAGS } from '@palestra/rollouts';
import { Database } from '../../platform/database/database.ts';
import { wordOf } from '../../store/vocabulary-codes.ts';
import { TranscriptReader } from '../../store/storage/transcript-reader.service.ts';
import { type FailureKey, fingerprint, normaliseError } from './failure-fingerprint.ts';
import { type FailedRow, selectFailed } from './run-insights.sql.ts';
import type { RunScope } from '../run-scope.ts';

const FLAGS = ROLLOUT_FLAGS.tool_error | ROLLOUT_FLAGS.env_error | ROLLOUT_FLAGS.infra_error | ROLLOUT_FLAGS.parse_error;
/** Bounds: failed rollouts of one answer, newest rollouts among which they are searched, milliseconds for reading their messages. */
const MAX_FAILED = 500;
const SEARCHED = 50_000;
const READ_MS = 1_500;
const LANES = 4;
const EXAMPLES = 5;

/** Failed rollouts, clustered by their error. */
@Injectable()
export class RunFailuresService {
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
    let read = 0;
    for (let at = 0; at < rows.length; at += LANES) {
      const batch = rows.slice(at, at + LANES);
      const inTime = performance.now() < deadline;
      if (inTime) read += batch.length;
      keys.push(...(await Promise.all(batch.map(async (row) => ({ row, key: inTime ? await this.#keyOf(row) : keyWithoutText(row) })))));
    }
    return { failures: clusters(keys).slice(0, limit), looked_at: rows.length, read, incomplete: false };
  }

  async #keyOf(row: FailedRow): Promise<FailureKey> {
    const messages = await this.transcripts.messages(row);
    const failed = messages.findLast(({ flags }) => flags & (MESSAGE_FLAGS.error | MESSAGE_FLAGS.parseError));
    const call = messages.findLast(({ type, name }) => type === 'tool_call' && name !== null);
    return { ...keyWithoutText(row), error: failed ? normaliseError(failed.content ?? '') : null, tool: call?.name ?? null };
  }
}

const keyWithoutText = ({ stop }: FailedRow): FailureKey => ({ error: null, tool: null, stop: wordOf(STOP_REASONS, stop) ?? 'unknown' });

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

import type pg from 'pg';
import {
  type BegunTurn,
  type KnownText,
  readActionTool,
  type TextConfig,
  type TextOutcome,
  type TextStore,
  type TextTotals,
  type TextTurn,
  writeActionTool,
} from '@palestra/text/server';
import { type JsonValue, stringifyJson } from '@palestra/protocol';
import { type SealedRow, type SecretBox, SecretMask } from '@palestra/session';
import { retryDatabase } from '../../platform/database/database-retry.ts';
import { withoutNul } from '../ledger/postgres-text.ts';

/**
 * Text sessions in PostgreSQL. Every statement finds its rows by a primary key. The start of a turn waits for the disk, so that a repeated turn
 * finds its call after any crash. An outcome does not, because it can be read from the call again.
 */
const INSERT = `
  INSERT INTO text_sessions (sid, org_id, parse, max_turns, environment, action, prompt, prompt_messages) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
  ON CONFLICT (sid) DO NOTHING`;

/** Index Scan using text_sessions_pkey; sessions_pkey; Index Scan Backward using text_turns_pkey, limited to one row; Index Scan using text_turns_pkey. */
const READ = `
  SELECT s.parse, s.max_turns, s.environment, s.action, e.secrets, e.org_id AS secrets_org,
    l.turn AS last_turn, l.fingerprint AS last_fingerprint, l.task_id AS last_task_id, l.done IS NOT NULL AS last_settled,
    a.turn AS asked_turn, a.fingerprint AS asked_fingerprint, a.task_id AS asked_task_id, a.done IS NOT NULL AS asked_settled
  FROM text_sessions AS s LEFT JOIN sessions AS e ON e.sid = s.sid
  LEFT JOIN LATERAL (SELECT * FROM text_turns AS t WHERE t.sid = s.sid ORDER BY t.turn DESC LIMIT 1) AS l ON true
  LEFT JOIN text_turns AS a ON a.sid = s.sid AND a.turn = $2
  WHERE s.sid = $1`;

/** Can be repeated when its answer was lost: `IS_OWN` then finds the row. */
const BEGIN = `
  INSERT INTO text_turns (sid, turn, fingerprint, task_id, said, reward, done, counted) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
  ON CONFLICT DO NOTHING RETURNING turn`;
const IS_OWN = `SELECT turn FROM text_turns WHERE sid = $1 AND turn = $2 AND fingerprint = $3 AND task_id IS NOT DISTINCT FROM $4`;

const SETTLE = `
  WITH commit AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
  UPDATE text_turns SET reward = $3, done = $4, counted = $5 FROM commit WHERE sid = $1 AND turn = $2 AND done IS NULL`;
const RELEASE = `DELETE FROM text_turns WHERE sid = $1 AND turn = $2 AND task_id = $3 AND done IS NULL`;
const TURNS = `SELECT turn, reward, done, counted FROM text_turns WHERE sid = $1 ORDER BY turn`;

/** The columns of a text session. */
export interface SessionRow {
  parse: TextConfig['parse'];
  max_turns: number;
  environment: string;
  action: string | null;
}

export const toConfig = (row: SessionRow): TextConfig => ({
  parse: row.parse,
  maxTurns: row.max_turns,
  environment: row.environment,
  action: readActionTool(row.action),
});

type TurnColumns<Name extends string> = Record<`${Name}_turn`, number | null> &
  Record<`${Name}_fingerprint` | `${Name}_task_id`, string | null> &
  Record<`${Name}_settled`, boolean>;
type ParsedTaskRow = SessionRow & { secrets: Buffer | null; secrets_org: string | null } & TurnColumns<'last'> & TurnColumns<'asked'>;
interface TurnRow {
  turn: number;
  reward: string | null;
  done: boolean | null;
  counted: boolean | null;
}

const NO_SECRETS = new SecretMask({});
/** Text that PostgreSQL accepts. */
const storable = (text: string): string => withoutNul(text).toWellFormed();

export class SqlTextStore implements TextStore {
  constructor(
    readonly pool: pg.Pool,
    readonly box: SecretBox,
  ) {}

  async insert(sid: string, orgId: string, { parse, maxTurns, environment, action }: TextConfig, prompt: JsonValue[]): Promise<void> {
    const read = [storable(stringifyJson(prompt)), prompt.length];
    await this.#query('text_insert', INSERT, [sid, orgId, parse, maxTurns, environment, writeActionTool(action), ...read]);
  }

  async read(sid: string, turn: number | null): Promise<KnownText | null> {
    const [row] = await this.#query<ParsedTaskRow>('text_read', READ, [sid, turn]);
    if (row === undefined) return null;
    const last = toTurn(row.last_turn, row.last_fingerprint, row.last_task_id, row.last_settled);
    const asked = toTurn(row.asked_turn, row.asked_fingerprint, row.asked_task_id, row.asked_settled);
    return { config: toConfig(row), mask: this.#maskOf(row.secrets, { sid, orgId: row.secrets_org ?? '' }), last, stored: asked };
  }

  async begin(sid: string, { turn, fingerprint, taskId, maskedText }: BegunTurn, outcome: TextOutcome | null): Promise<boolean> {
    const settled = [outcome?.reward ?? null, outcome?.done ?? null, outcome?.counted ?? null];
    let attempts = 0;
    return retryDatabase(async () => {
      attempts += 1;
      const values = [sid, turn, fingerprint, taskId];
      const all = [...values, storable(maskedText), ...settled];
      if ((await this.pool.query({ name: 'text_begin', text: BEGIN, values: all })).rowCount === 1) return true;
      return attempts > 1 && (await this.pool.query({ name: 'text_is_own', text: IS_OWN, values })).rowCount === 1;
    });
  }

  async settle(sid: string, turn: number, { reward, done, counted }: TextOutcome): Promise<void> {
    await this.#query('text_settle', SETTLE, [sid, turn, reward, done, counted]);
  }

  async release(sid: string, turn: number, taskId: string): Promise<void> {
    await this.#query('text_release', RELEASE, [sid, turn, taskId]);
  }

  async totals(sid: string): Promise<TextTotals> {
    const turns = await this.#query<TurnRow>('text_turns', TURNS, [sid]);
    return {
      turns: turns.at(-1)?.turn ?? 0,
      done: turns.at(-1)?.done === true,
      rewards: turns.filter(({ counted }) => counted === true).map(({ reward }) => reward!),
    };
  }

  /** Without the key of the secrets it hides nothing, because this process cannot reveal them. */
  #maskOf(secrets: Buffer | null, row: SealedRow): SecretMask {
    if (secrets === null) return NO_SECRETS;
    try {
      return new SecretMask(this.box.open(secrets, row));
    } catch {
      return NO_SECRETS;
    }
  }

  #query<R extends object>(name: string, text: string, values: unknown[]): Promise<R[]> {
    return retryDatabase(async () => (await this.pool.query<R & pg.QueryResultRow>({ name, text, values })).rows);
  }
}

function toTurn(turn: number | null, fingerprint: string | null, taskId: string | null, settled: boolean): TextTurn | null {
  return turn === null ? null : { turn, fingerprint: fingerprint!, taskId, settled };
}

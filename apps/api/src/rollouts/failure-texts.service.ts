import { Injectable } from '@nestjs/common';
import { CAUSE_KINDS, classOfFingerprint, fingerprintOfBigint, type JsonObject, STOP_REASONS } from '@palestra/protocol';
import { errorLine, normaliseError, reportedText, textOfError } from '@palestra/rollouts';
import { LRUCache } from 'lru-cache';
import { Database } from '../platform/database/database.ts';
import { TranscriptReader } from '../store/storage/transcript-reader.service.ts';
import { wordOf } from '../store/vocabulary-codes.ts';
import { selectTranscriptLocations } from './transcript-location.sql.ts';

/** The stored cause of a rollout. */
export interface CauseRow {
  seq: string;
  revision: number;
  stop: number | null;
  /** Null: nothing failed. '0': not derived yet. */
  cause: string | null;
  cause_index: number | null;
  cause_kind: number | null;
  cause_tool: string | null;
}

const MAX_CACHED = 5_000;

/** Reads what failed rollouts say of their failure: at most one message of each. */
@Injectable()
export class FailureTexts {
  /** One-line texts, by rollout and revision. */
  readonly #texts = new LRUCache<string, string>({ max: MAX_CACHED });

  constructor(
    private readonly database: Database,
    private readonly transcripts: TranscriptReader,
  ) {}

  /** By `seq`, without rollouts that did not fail. The caller bounds the number of rows. */
  async of(rows: readonly CauseRow[]) {
    const failed = rows.filter(({ cause }) => cause !== null && cause !== '0');
    const texts = new Map<string, string>();
    for (const row of failed) {
      const known = this.#texts.get(keyOf(row));
      if (known !== undefined) texts.set(row.seq, known);
    }
    const unread = failed.filter(({ seq }) => !texts.has(seq));
    for (const [seq, text] of await this.#read(unread)) texts.set(seq, text);
    for (const row of unread) this.#texts.set(keyOf(row), texts.get(row.seq) ?? '');
    return new Map(failed.map((row) => [row.seq, present(row, texts.get(row.seq) ?? '')]));
  }

  async #read(rows: readonly CauseRow[]): Promise<Map<string, string>> {
    const ofKind = (...kinds: string[]) => rows.filter((row) => kinds.includes(kindOf(row)));
    const messages = new Map(ofKind('call', 'parse').flatMap(({ seq, cause_index: index }) => (index === null ? [] : [[seq, index]])));
    const reported = ofKind('reported').map(({ seq }) => seq);
    const [errors, infos] = await Promise.all([
      messages.size === 0 ? [] : this.#errors(messages),
      reported.length === 0 ? [] : this.#reported(reported),
    ]);
    return new Map([...errors, ...infos]);
  }

  async #errors(indexes: ReadonlyMap<string, number>): Promise<[string, string][]> {
    const locations = await selectTranscriptLocations(this.database.pool, [...indexes.keys()]);
    const messages = await this.transcripts.errors(locations.map((location) => ({ ...location, index: indexes.get(location.seq)! })));
    return [...messages].map(([seq, message]) => [seq, errorLine(textOfError(message))]);
  }

  /** Plan: rollout_starts_pkey. */
  async #reported(seqs: readonly string[]): Promise<[string, string][]> {
    const { rows } = await this.database.pool.query<{ seq: string; info: JsonObject | null; start: JsonObject | null }>(
      'SELECT rollout_seq::text AS seq, rollout_info AS info, start FROM rollout_starts WHERE rollout_seq = ANY($1::bigint[])',
      [seqs],
    );
    return rows.map(({ seq, info, start }) => [seq, errorLine(reportedText(info ?? {}, start) ?? '')]);
  }
}

const keyOf = ({ seq, revision }: CauseRow): string => `${seq} ${revision}`;
const kindOf = ({ cause_kind: kind }: CauseRow) => wordOf(CAUSE_KINDS, kind) ?? 'stop';

function present(row: CauseRow, text: string) {
  const fingerprint = fingerprintOfBigint(row.cause!);
  const kind = kindOf(row);
  return {
    fingerprint,
    class: classOfFingerprint(fingerprint) ?? 'policy',
    kind,
    tool: row.cause_tool,
    stop: wordOf(STOP_REASONS, row.stop) ?? 'unknown',
    error: kind === 'stop' ? null : normaliseError(text),
    text: kind === 'stop' ? null : text,
    index: row.cause_index,
  };
}

import type { TextConfig } from '@palestra/text/server';
import type pg from 'pg';
import { type SessionRow, toConfig } from './text-turns.sql.ts';

/** Of a recorded text session, what its model said, as far as that is to be written now. */
export interface RecordedText {
  config: TextConfig;
  /** JSON text of the chat messages that its model read first; null when a call has been written, and with it these. */
  prompt: string | null;
  /** How many those are. */
  promptMessages: number;
  /** Messages before these turns that belong to no call. */
  extras: number;
  /** Those after the turn of the last call that was written, in order. */
  turns: RecordedTurn[];
}

export interface RecordedTurn {
  turn: number;
  task_id: string | null;
  /** null: not kept, by the version that played the turn. */
  said: string | null;
  /** JSON number as written, what the trainer was given; null while the turn's call runs. */
  reward: string | null;
  done: boolean | null;
}

/** Each text of a model is a message, and so is what it was told where it made no call; after the last turn nothing follows. */
export const extrasOf = ({ said, task_id: taskId, done }: Omit<RecordedTurn, 'turn' | 'reward'>): number =>
  said === null ? 0 : 1 + Number(taskId === null && done !== true);

/** `extrasOf`, for turns that are not read again. */
const EXTRAS = `sum(CASE WHEN t.said IS NULL THEN 0 WHEN t.task_id IS NULL AND t.done IS NOT TRUE THEN 2 ELSE 1 END)`;

/** Plan: per session an Index Scan using text_sessions_pkey, and three using text_turns_pkey, the first with a probe of session_calls_pkey a row. */
const TEXTS = `
  SELECT s.sid, x.parse, x.max_turns, x.environment, x.action, CASE WHEN s.after = 0 THEN x.prompt END AS prompt, x.prompt_messages, b.extras, t.turn, t.task_id, t.said, t.reward, t.done
  FROM unnest($1::text[], $2::bigint[]) AS s(sid, after)
  JOIN text_sessions AS x ON x.sid = s.sid
  CROSS JOIN LATERAL (
    SELECT COALESCE(max(t.turn), 0) AS turn FROM text_turns AS t JOIN session_calls AS c ON c.task_id = t.task_id
    WHERE t.sid = s.sid AND c.seq <= s.after) AS written
  CROSS JOIN LATERAL (
    SELECT COALESCE(${EXTRAS}, 0)::int AS extras FROM text_turns AS t WHERE t.sid = s.sid AND t.turn <= written.turn) AS b
  LEFT JOIN LATERAL (SELECT * FROM text_turns AS t WHERE t.sid = s.sid AND t.turn > written.turn) AS t ON true
  ORDER BY s.sid, t.turn`;

interface TextRow extends SessionRow {
  sid: string;
  prompt: string | null;
  prompt_messages: number;
  extras: number;
  turn: number | null;
  task_id: string | null;
  said: string | null;
  reward: string | null;
  done: boolean | null;
}

/** Of these sessions those of text. `after`: `seq` of the last call that was written. */
export async function textsOf(
  client: Pick<pg.Pool, 'query'>,
  sessions: { sid: string; after: string }[],
): Promise<Map<string, RecordedText>> {
  const values = [sessions.map(({ sid }) => sid), sessions.map(({ after }) => after)];
  const { rows } = await client.query<TextRow>({ name: 'recording_texts', text: TEXTS, values });
  const texts = new Map<string, RecordedText>();
  for (const row of rows) {
    const { prompt, prompt_messages: promptMessages, extras, turn, task_id, said, reward, done } = row;
    const text = texts.get(row.sid) ?? { config: toConfig(row), prompt, promptMessages, extras, turns: [] };
    texts.set(row.sid, text);
    if (turn !== null) text.turns.push({ turn, task_id, said, reward, done });
  }
  return texts;
}

/**
 * Their recordings are complete: what was said in them is in their rollouts, which can be erased, and stands here no more. What clients may still
 * ask for (turns, metrics) stays for a day. Plan: Index Scan using text_sessions_pkey; Index Scan using text_turns_pkey.
 */
const FORGET_WORDS = `
  WITH complete AS (
    UPDATE text_sessions SET prompt = NULL, due_at = now() + interval '1 day' WHERE sid = ANY($1::text[]) RETURNING sid)
  UPDATE text_turns SET said = NULL WHERE sid = ANY(ARRAY(SELECT sid FROM complete)) AND said IS NOT NULL`;

export async function forgetWords(client: Pick<pg.Pool, 'query'>, sids: string[]): Promise<void> {
  if (sids.length > 0) await client.query({ name: 'recording_forget', text: FORGET_WORDS, values: [sids] });
}

import type { TextConfig } from '@palestra/text/server';
import type pg from 'pg';
import { type SessionRow, toConfig } from './text-turns.sql.ts';

/** The part of a recorded text session that has to be written now. */
export interface RecordedText {
  config: TextConfig;
  /** JSON text of the chat messages of the prompt; null when they have been written, with the first call. */
  prompt: string | null;
  /** How many messages the prompt has. */
  promptMessages: number;
  /** How many messages before these turns belong to no call. */
  extras: number;
  /** The turns after the turn of the last call that was written, in order. */
  turns: RecordedTurn[];
}

export interface RecordedTurn {
  turn: number;
  task_id: string | null;
  /** The text of the model; null when an older version played the turn. */
  said: string | null;
  /** The reward that the trainer got, as a JSON number; null while the turn's call runs. */
  reward: string | null;
  done: boolean | null;
}

/** How many messages of a turn belong to no call: the text of the model, and the answer to a turn without a call, unless it was the last. */
export const extrasOf = ({ said, task_id: taskId, done }: Omit<RecordedTurn, 'turn' | 'reward'>): number =>
  said === null ? 0 : 1 + Number(taskId === null && done !== true);

/** `extrasOf` in SQL, for turns that are not read again. */
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

/** The text sessions among these. `after`: `seq` of the last call that was written. */
export async function readTexts(
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
 * Deletes the texts of sessions whose recordings are complete, because they are in the rollouts, which users can erase. Turns and metrics, for
 * which clients may still ask, stay for a day. Plan: Index Scan using text_sessions_pkey; Index Scan using text_turns_pkey.
 */
const DELETE_TEXTS = `
  WITH complete AS (
    UPDATE text_sessions SET prompt = NULL, due_at = now() + interval '1 day' WHERE sid = ANY($1::text[]) RETURNING sid)
  UPDATE text_turns SET said = NULL WHERE sid = ANY(ARRAY(SELECT sid FROM complete)) AND said IS NOT NULL`;

export async function deleteTexts(client: Pick<pg.Pool, 'query'>, sids: string[]): Promise<void> {
  if (sids.length > 0) await client.query({ name: 'recording_forget', text: DELETE_TEXTS, values: [sids] });
}

import type pg from 'pg';
import { CALL_FAILURES } from '@palestra/protocol';
import { arrayOf, copyOut } from '../../../platform/database/copy-out.ts';

/** Calls of one tool, as many of them as `entries` has records. */
export interface PackedTool {
  tool: string;
  /** `USE_BYTES` or `CALL_BYTES` each. */
  entries: Buffer;
}

/** `rollout_tools.facts`, of a rollout that used the tool: its seq (8 bytes), calls (4), errors (4), bytes of results (8). */
export const USE_BYTES = 24;
/** Of a call that our ledger saw: seq of its rollout (8 bytes), milliseconds (4, a float; NaN = not known), failure class as in `CALL_FAILURES` (2). */
export const CALL_BYTES = 14;
/** Rollouts of several runs that came at the same time take turns: reading so many others is cheaper than another search in the index. */
const GAP = 4;

/** Grouped a step at a time: to find one of a few tools takes a sixth less than to find one of a step and a tool. */
const within = (of: string, table: string, values: string) => `
SELECT '${of}'::text, s.position, e.tool, e.entries FROM step s
CROSS JOIN LATERAL (
  SELECT tool, string_agg(${values}, ''::bytea) AS entries FROM unnest(s.starts, s.ends) AS r(first, last)
  JOIN ${table} ON rollout_seq >= r.first AND rollout_seq <= r.last GROUP BY tool) e`;
const USES = within('uses', 'rollout_tools', 'facts');
const CALLS = within(
  'calls',
  'rollout_calls',
  `int8send(rollout_seq) || float4send(COALESCE(duration_ms, 'NaN')) || int2send(COALESCE(array_position(ARRAY['${CALL_FAILURES.join("','")}'], failure_class), 0)::smallint)`,
);

/** Of a step. */
export interface ToolUses {
  /** What rollouts used of each tool. */
  uses: PackedTool[];
  /** Their calls as the ledger saw them. */
  calls: PackedTool[];
}

/**
 * Of the rollouts of some steps: `seqs` are their numbers, of each step ascending; uses of some that lie between are among them. Plan: per step and range of numbers an
 * Index Scan using rollout_tools_pkey, and one using rollout_calls_pkey, hashed by tool.
 */
export async function selectToolUses(client: Pick<pg.ClientBase, 'query'>, seqs: readonly Float64Array[]): Promise<ToolUses[]> {
  const steps = seqs.map((): ToolUses => ({ uses: [], calls: [] }));
  const asked = seqs.flatMap((own, position) => (own.length > 0 ? [`(${position}, ${rangesOf(own).join(', ')})`] : []));
  if (asked.length === 0) return steps;
  const rows = await copyOut(client, `WITH step(position, starts, ends) AS (VALUES ${asked.join(', ')}) ${USES} UNION ALL ${CALLS}`);
  for (const [of, position, tool, entries] of rows)
    steps[position!.readInt32BE()]![of!.toString() as keyof ToolUses].push({ tool: tool!.toString(), entries: entries! });
  return steps;
}

/** First and last number of each range. */
function rangesOf(seqs: Float64Array): [starts: string, ends: string] {
  const [starts, ends]: [number[], number[]] = [[], []];
  let from = 0;
  for (let at = 0; at < seqs.length; at += 1) {
    if (at + 1 < seqs.length && seqs[at + 1]! - seqs[at]! <= GAP) continue;
    starts.push(seqs[from]!);
    ends.push(seqs[at]!);
    from = at + 1;
  }
  return [arrayOf('bigint', starts), arrayOf('bigint', ends)];
}

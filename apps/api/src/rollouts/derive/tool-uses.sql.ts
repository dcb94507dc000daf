import type pg from 'pg';

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
export const CALL_FAILURES = ['policy', 'environment', 'infrastructure'] as const;

/** Rollouts of several runs that came at the same time take turns: reading so many others is cheaper than another search in the index. */
const GAP = 4;

const within = (table: string, values: string) => `
SELECT '${table}' AS of, r.position, tool, string_agg(${values}, ''::bytea) AS entries
FROM unnest($1::int[], $2::bigint[], $3::bigint[]) AS r(position, first, last) JOIN ${table} ON rollout_seq >= r.first AND rollout_seq <= r.last GROUP BY r.position, tool`;
const USES = within('rollout_tools', 'facts');
const CALLS = within(
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
 * Of the rollouts of some steps: `seqs` are their numbers, of each step ascending; uses of some that lie between are among them. Plan: per range of numbers an Index
 * Scan using rollout_tools_pkey, and one using rollout_calls_pkey, hashed by step and tool.
 */
export async function selectToolUses(client: Pick<pg.Pool, 'query'>, seqs: readonly Float64Array[]): Promise<ToolUses[]> {
  const { rows } = await client.query<PackedTool & { of: string; position: number }>({
    name: 'rollups-tools',
    text: `${USES} UNION ALL ${CALLS}`,
    values: rangesOf(seqs),
  });
  const steps = seqs.map((): ToolUses => ({ uses: [], calls: [] }));
  for (const { of, position, tool, entries } of rows) steps[position]![of === 'rollout_tools' ? 'uses' : 'calls'].push({ tool, entries });
  return steps;
}

function rangesOf(steps: readonly Float64Array[]): [positions: number[], firsts: number[], lasts: number[]] {
  const [positions, firsts, lasts]: [number[], number[], number[]] = [[], [], []];
  steps.forEach((seqs, position) => {
    let from = 0;
    for (let at = 0; at < seqs.length; at += 1) {
      if (at + 1 < seqs.length && seqs[at + 1]! - seqs[at]! <= GAP) continue;
      positions.push(position);
      firsts.push(seqs[from]!);
      lasts.push(seqs[at]!);
      from = at + 1;
    }
  });
  return [positions, firsts, lasts];
}

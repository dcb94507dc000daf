import type pg from 'pg';

/** Calls of one tool, as many of them as `entries` has records. */
export interface PackedTool {
  tool: string;
  /** `USE_BYTES` or `CALL_BYTES` each. */
  entries: Buffer;
}

/** Of a rollout that used the tool: its seq (8 bytes), calls (4), errors (4), bytes of results (8). */
export const USE_BYTES = 24;
/** Of a call that our ledger saw: seq of its rollout (8 bytes), milliseconds (4, a float; NaN = not known), failure class as in `CALL_FAILURES` (2). */
export const CALL_BYTES = 14;
export const CALL_FAILURES = ['policy', 'environment', 'infrastructure'] as const;

/** Rollouts of several runs that came at the same time take turns: reading so many others is cheaper than another search in the index. */
const GAP = 4;

const within = (table: string, values: string) => `
SELECT s.position::int - 1 AS position, t.tool, t.entries
FROM (SELECT position, array_agg(first) AS firsts, array_agg(last) AS lasts FROM unnest($1::int[], $2::bigint[], $3::bigint[]) AS r(position, first, last) GROUP BY 1) s
CROSS JOIN LATERAL (
  SELECT tool, string_agg(${values}, ''::bytea) AS entries
  FROM unnest(s.firsts, s.lasts) AS r(first, last) JOIN ${table} ON rollout_seq >= r.first AND rollout_seq <= r.last GROUP BY 1) t`;
const USES = within('rollout_tools', 'int8send(rollout_seq) || int4send(calls) || int4send(errors) || int8send(result_bytes)');
const CALLS = within(
  'rollout_calls',
  `int8send(rollout_seq) || float4send(COALESCE(duration_ms, 'NaN')) || int2send(COALESCE(array_position(ARRAY['${CALL_FAILURES.join("','")}'], failure_class), 0)::smallint)`,
);

/**
 * By step, of whose rollouts `seqs` has the numbers in ascending order: what each used of tools, and its calls as the ledger saw them. Among them are
 * those of some rollouts that lie between. Plan: per range of numbers an Index Scan using rollout_tools_pkey, or rollout_calls_pkey, hashed by tool.
 */
export async function selectToolUses(
  client: Pick<pg.Pool, 'query'>,
  seqs: readonly Float64Array[],
): Promise<{ uses: PackedTool[]; calls: PackedTool[] }[]> {
  const ranges = rangesOf(seqs);
  const found = seqs.map(() => ({ uses: [] as PackedTool[], calls: [] as PackedTool[] }));
  for (const [name, text, kind] of [
    ['rollups-tools', USES, 'uses'],
    ['rollups-calls', CALLS, 'calls'],
  ] as const) {
    const { rows } = await client.query<PackedTool & { position: number }>({ name, text, values: ranges });
    for (const { position, tool, entries } of rows) found[position]![kind].push({ tool, entries });
  }
  return found;
}

function rangesOf(seqs: readonly Float64Array[]): [positions: number[], firsts: number[], lasts: number[]] {
  const [positions, firsts, lasts]: [number[], number[], number[]] = [[], [], []];
  seqs.forEach((own, position) => {
    for (let at = 0, from = 0; at < own.length; at += 1) {
      if (at + 1 < own.length && own[at + 1]! - own[at]! <= GAP) continue;
      positions.push(position + 1);
      firsts.push(own[from]!);
      lasts.push(own[at]!);
      from = at + 1;
    }
  });
  return [positions, firsts, lasts];
}

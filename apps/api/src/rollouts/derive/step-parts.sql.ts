import type pg from 'pg';
import { type Arrivals, windowWidth } from './arrival-windows.ts';
import type { StepKey } from './rollup.sql.ts';
import { GroupKeys, type StepPart, unpackPart } from './step-columns.ts';

interface PartRow {
  position: number;
  env_id: number;
  from: number | null;
  seqs: Buffer;
  facts: Buffer;
}

const MILLISECONDS = `date_part('epoch', received_at) * 1000`;
const WITHIN = 'run_seq = s.run_seq AND COALESCE(step, -1) = s.step AND phase = s.phase';
/** Of a step that may hold a whole run a part has rollouts of so many numbers at most, as a power of two: a row of PostgreSQL ends at a gigabyte. */
const CHUNK_BITS = 20;
/** One statement and so one snapshot for all steps: a rollout that moves from one to another is in one of them. */
const PARTS = `
SELECT s.position::int - 1 AS position, p.* FROM unnest($1::int[], $2::smallint[], $3::int[], $4::float8[]) WITH ORDINALITY AS s(run_seq, phase, step, width, position)
CROSS JOIN LATERAL (
  SELECT env_id, CASE WHEN s.width IS NOT NULL THEN floor(${MILLISECONDS} / s.width) * s.width END AS "from",
    string_agg(int8send(seq), ''::bytea) AS seqs, string_agg(facts, ''::bytea) AS facts
  FROM rollouts WHERE ${WITHIN} GROUP BY 1, 2, seq >> ${CHUNK_BITS}) p`;

/**
 * The parts of each step; none for a step without rollouts. Plan: per step an Index Scan using rollouts_run_step_idx, hashed by environment: two
 * concatenations a rollout, where an aggregate a figure cost several times as much.
 */
export async function selectStepParts(client: Pick<pg.Pool, 'query'>, steps: readonly StepKey[]): Promise<StepPart[][]> {
  const widths = await selectWidths(client, steps);
  const { rows } = await client.query<PartRow>({
    name: 'rollups-parts',
    text: PARTS,
    values: [steps.map((s) => s.run_seq), steps.map((s) => s.phase), steps.map((s) => s.step), widths],
  });
  const groups = steps.map(() => new GroupKeys());
  const parts: StepPart[][] = steps.map(() => []);
  for (const { position, env_id, from, seqs, facts } of rows) {
    const width = widths[position] ?? null;
    const part = unpackPart({ env_id, window: null, seqs, facts }, groups[position]!);
    if (from !== null && width !== null) part.window = { from, to: from + width, ...endsOf(part.seq) };
    parts[position]!.push(part);
  }
  return parts;
}

function endsOf(seq: Float64Array): { first_seq: string; last_seq: string } {
  const sorted = seq.toSorted();
  return { first_seq: String(sorted[0]), last_seq: String(sorted.at(-1)) };
}

/** Of steps that are not known the width of their windows in milliseconds. Plan: per step an Index Scan using rollouts_run_step_idx. */
async function selectWidths(client: Pick<pg.Pool, 'query'>, steps: readonly StepKey[]): Promise<(number | null)[]> {
  const unknown = steps.filter(({ step }) => step < 0);
  if (unknown.length === 0) return steps.map(() => null);
  const { rows } = await client.query<Arrivals>(
    `SELECT a.* FROM unnest($1::int[], $2::smallint[], $3::int[]) WITH ORDINALITY AS s(run_seq, phase, step, position) CROSS JOIN LATERAL (
       SELECT count(*)::float8 AS count, COALESCE(min(${MILLISECONDS}), 0) AS first, COALESCE(max(${MILLISECONDS}), 0) AS last FROM rollouts WHERE ${WITHIN}) a
     ORDER BY s.position`,
    [unknown.map((s) => s.run_seq), unknown.map((s) => s.phase), unknown.map((s) => s.step)],
  );
  return steps.map((step) => (step.step < 0 ? windowWidth(rows[unknown.indexOf(step)]!) : null));
}

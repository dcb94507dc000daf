import type pg from 'pg';
import { arrayOf, copyOut } from '../../../platform/database/copy-out.ts';
import { type Arrivals, windowWidth } from './arrival-windows.ts';
import { stepArrays, type StepKey } from './rollup.sql.ts';
import { GroupKeys, type StepPart, unpackParts } from './step-columns.ts';

const MILLISECONDS = `date_part('epoch', received_at) * 1000`;
const OF_STEP = 'run_seq = s.run_seq AND COALESCE(step, -1) = s.step';
const WITHIN = `${OF_STEP} AND phase = s.phase`;
/** A step may hold a whole run: concatenated are rollouts of so many numbers at most, as a power of two, since a row of PostgreSQL ends at a gigabyte. */
const CHUNK_BITS = 20;
/** Chunks of a known step are ranges of the index that is read anyway: to group by them costs as much as reading does. */
const KNOWN = (steps: string) => `
SELECT s.position, NULL::float8, p.facts FROM ${steps}
CROSS JOIN LATERAL (SELECT min(seq) >> ${CHUNK_BITS} AS first, max(seq) >> ${CHUNK_BITS} AS last FROM rollouts WHERE ${OF_STEP}) ends
CROSS JOIN LATERAL generate_series(ends.first, ends.last) AS chunk
CROSS JOIN LATERAL (
  SELECT string_agg(facts, ''::bytea) AS facts FROM rollouts WHERE ${WITHIN} AND seq >= chunk << ${CHUNK_BITS} AND seq < (chunk + 1) << ${CHUNK_BITS}) p
WHERE p.facts IS NOT NULL`;
const UNKNOWN = (steps: string) => `
SELECT s.position, p.* FROM ${steps}
CROSS JOIN LATERAL (
  SELECT floor(${MILLISECONDS} / s.width) * s.width, string_agg(facts, ''::bytea) FROM rollouts WHERE ${WITHIN} GROUP BY 1, seq >> ${CHUNK_BITS}) p`;

/** Of a step its place in the list, and the width of its windows where it is not known. */
interface Asked {
  step: StepKey;
  position: number;
  width: number | null;
}

const stepsOf = (asked: readonly Asked[]) => {
  const own = [
    arrayOf(
      'int',
      asked.map(({ position }) => position),
    ),
    arrayOf(
      'float8',
      asked.map(({ width }) => width ?? 0),
    ),
  ];
  return `unnest(${stepArrays(asked.map(({ step }) => step))}, ${own.join(', ')}) AS s(run_seq, phase, step, position, width)`;
};

/**
 * The parts of each step; none for a step without rollouts. Plan: per step both ends of rollouts_run_step_idx, then an Index Scan using it a chunk; of a step that is not
 * known one, hashed by window. One concatenation a rollout, where an aggregate a figure cost several times as much.
 */
export async function selectStepParts(client: Pick<pg.ClientBase, 'query'>, steps: readonly StepKey[]): Promise<StepPart[][]> {
  const widths = await selectWidths(client, steps);
  const asked = steps.map((step, position): Asked => ({ step, position, width: widths[position]! }));
  const [known, unknown] = [asked.filter(({ width }) => width === null), asked.filter(({ width }) => width !== null)];
  const selects = [...(known.length > 0 ? [KNOWN(stepsOf(known))] : []), ...(unknown.length > 0 ? [UNKNOWN(stepsOf(unknown))] : [])];
  const rows = selects.length > 0 ? await copyOut(client, selects.join('\nUNION ALL')) : [];
  const groups = steps.map(() => new GroupKeys());
  const parts: StepPart[][] = steps.map(() => []);
  for (const [at, from, facts] of rows) {
    const position = at!.readInt32BE();
    const width = widths[position] ?? null;
    for (const part of unpackParts(facts!, groups[position]!)) {
      if (from && width !== null) part.window = { from: from.readDoubleBE(), to: from.readDoubleBE() + width, ...endsOf(part.seq) };
      parts[position]!.push(part);
    }
  }
  return parts;
}

function endsOf(seq: Float64Array): { first_seq: string; last_seq: string } {
  const sorted = seq.toSorted();
  return { first_seq: String(sorted[0]), last_seq: String(sorted.at(-1)) };
}

/** Of steps that are not known the width of their windows in milliseconds. Plan: per step an Index Scan using rollouts_run_step_idx. */
async function selectWidths(client: Pick<pg.ClientBase, 'query'>, steps: readonly StepKey[]): Promise<(number | null)[]> {
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

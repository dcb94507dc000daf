import { createHash } from 'node:crypto';
import type { ExportedMessage, NarrowRollout } from '../rollouts/exported-rollout.ts';
import { type Column, NARROW_COLUMNS } from '../rollouts/narrow-columns.ts';
import { rolloutParquet } from '../rollouts/rollout-parquet.ts';

/** A sealed rollout in the lake. */
export interface LakeRollout extends NarrowRollout {
  run_name: string;
  /** Key of its messages: gzipped JSON lines in the same bucket. */
  transcript_key: string;
  messages?: ExportedMessage[];
}

/** The prefix of the lake. */
export const LAKE_PREFIX = 'lake/';
/** Rollouts of so many positions in the order of arrival may share a file. A file is written again when one of them changes. */
export const LAKE_PART_PLACES = 65_536;
/** The null of Hive, Spark and DuckDB in a path. */
const NULL_PARTITION = '__HIVE_DEFAULT_PARTITION__';
const MAX_SLUG = 60;
/** Bytes of the name of an organisation in a path. With `org=` it is a segment, which has 240 at most (blob-store.ts). */
const MAX_OWNER = 236;
const HASH_DIGITS = 16;

/**
 * Columns of the path are not in the file, where they would override or contradict the path. Columns that depend on other rollouts
 * (advantages) or that people change at any time (annotations) are also missing, so that a file depends on its rollouts only.
 */
const NOT_IN_FILES = new Set<string>(['org', 'run', 'step', 'group_scored', 'group_mean', 'group_std', 'advantage', 'annotations']);

export const LAKE_COLUMNS: readonly Column[] = [
  { name: 'run_name', type: 'string', about: 'name of the run' },
  ...NARROW_COLUMNS.filter(({ name }) => !NOT_IN_FILES.has(name)),
  { name: 'transcript_key', type: 'string', about: 'object with its messages, gzipped JSON lines' },
];

export interface LakePlace {
  org: string;
  run: { id: string; name: string };
  /** null: not known. */
  step: number | null;
  part: number;
}

/** `lake/org=acme/run=my-run-<id>/step=7/part-00000.parquet`: Hive's layout, by which readers skip files. */
export function lakeKey({ org, run, step, part }: LakePlace): string {
  const slug = slugOf(run.name);
  const name = slug === '' ? run.id : `${slug}-${run.id}`;
  const file = `part-${String(part).padStart(5, '0')}.parquet`;
  return `${LAKE_PREFIX}org=${ownerOf(org)}/run=${name}/step=${step ?? NULL_PARTITION}/${file}`;
}

/** A name that is too long is cut, and ends with the beginning of its hash. */
function ownerOf(org: string): string {
  const whole = encodeURIComponent(org);
  if (whole.length <= MAX_OWNER) return whole;
  const hash = createHash('sha256').update(org).digest('hex').slice(0, HASH_DIGITS);
  let cut = '';
  for (const character of org) {
    const escaped = encodeURIComponent(character);
    if (cut.length + escaped.length + 1 + HASH_DIGITS > MAX_OWNER) break;
    cut += escaped;
  }
  return `${cut}-${hash}`;
}

function slugOf(name: string): string {
  const words =
    name
      .normalize('NFKD')
      .toLowerCase()
      .match(/[a-z0-9]+/g) ?? [];
  return words.join('-').slice(0, MAX_SLUG).replace(/-$/, '');
}

/** One file. The messages are a column that readers load only on request. */
export function lakeFile(rows: AsyncIterable<LakeRollout>, { messages }: { messages: boolean }): AsyncGenerator<Uint8Array> {
  return rolloutParquet(rows, { messages, columns: LAKE_COLUMNS });
}

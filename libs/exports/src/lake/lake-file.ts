import type { ExportedMessage, NarrowRollout } from '../rollouts/exported-rollout.ts';
import { type Column, NARROW_COLUMNS } from '../rollouts/narrow-columns.ts';
import { rolloutParquet } from '../rollouts/rollout-parquet.ts';

/** A sealed rollout as the lake has it. */
export interface LakeRollout extends NarrowRollout {
  run_name: string;
  /** Its messages: gzipped JSON lines in the same bucket. */
  transcript_key: string;
  messages?: ExportedMessage[];
}

/** Everything below it is the lake. */
export const LAKE_PREFIX = 'lake/';
/** Rollouts of so many places in the order of arrival may share a file: a file is written anew when one of them changes. */
export const LAKE_PART_PLACES = 65_536;
/** What Hive, Spark and DuckDB read as null in a path. */
const NULL_PARTITION = '__HIVE_DEFAULT_PARTITION__';
const MAX_SLUG = 60;

/**
 * Columns that are in the path are not in the file, where they would win over it or clash with it. Those that depend on other rollouts
 * (advantages) or that people change at any time (annotations) are not in it either: a file follows from its rollouts alone.
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
  /** null = not known. */
  step: number | null;
  part: number;
}

/** `lake/org=acme/run=my-run-<id>/step=7/part-00000.parquet`: Hive's layout, which readers prune by. */
export function lakeKey({ org, run, step, part }: LakePlace): string {
  const slug = slugOf(run.name);
  const name = slug === '' ? run.id : `${slug}-${run.id}`;
  const file = `part-${String(part).padStart(5, '0')}.parquet`;
  return `${LAKE_PREFIX}org=${encodeURIComponent(org)}/run=${name}/step=${step ?? NULL_PARTITION}/${file}`;
}

function slugOf(name: string): string {
  const words =
    name
      .normalize('NFKD')
      .toLowerCase()
      .match(/[a-z0-9]+/g) ?? [];
  return words.join('-').slice(0, MAX_SLUG).replace(/-$/, '');
}

/** One file; with the messages as a column that costs a reader nothing unless it is asked for. */
export function lakeFile(rows: AsyncIterable<LakeRollout>, { messages }: { messages: boolean }): AsyncGenerator<Uint8Array> {
  return rolloutParquet(rows, { messages, columns: LAKE_COLUMNS });
}

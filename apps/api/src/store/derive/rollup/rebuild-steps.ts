import { setImmediate as turn } from 'node:timers/promises';
import type { SuccessRule } from '@palestra/metrics';
import type pg from 'pg';
import { rollUpStep } from './rollup.figures.ts';
import type { StepKey } from './rollup.sql.ts';
import type { StepPart } from './step-columns.ts';
import { selectStepParts } from './step-parts.sql.ts';
import { type MadeStep, writeSteps } from './step-write.sql.ts';
import { groupChanges, selectStoredGroups } from './stored-groups.sql.ts';
import { type Members, membersOf, toolRollups } from './tool-figures.ts';
import { selectToolUses, type ToolUses } from './tool-uses.sql.ts';

/** A step whose figures are to be rebuilt. */
export interface StepToRebuild {
  step: StepKey;
  /** Version of the run's figures. */
  version: string;
  ruleOf: (envId: number) => SuccessRule;
}

/** A step with the input of its figures. */
interface ReadStep extends StepToRebuild {
  parts: readonly StepPart[];
  members: Members;
  uses: ToolUses;
  /** The stored groups, packed. */
  groups: Buffer;
}

/** Bounds of a chunk: small enough for one statement, large enough to need few round trips. */
const CHUNK_ROLLOUTS = 8_000;
const CHUNK_STEPS = 16;
/** Size of the first chunk. The size of steps is not known yet, and nothing runs beside the first read. */
const FIRST_STEPS = 2;
/** Chunks to read ahead, so that PostgreSQL always has the next one queued. */
const AHEAD = 2;

/** How many steps the next chunk takes, if they are as large as those of the previous one. */
function stepsAfter(chunk: readonly ReadStep[]): number {
  if (chunk.length === 0) return FIRST_STEPS;
  const rollouts = chunk.reduce((total, { members }) => total + members.seq.length, 0);
  return Math.max(1, Math.min(CHUNK_STEPS, Math.round((CHUNK_ROLLOUTS * chunk.length) / Math.max(rollouts, 1))));
}

/**
 * Makes figures of the steps and writes them, in the transaction of `client`, which has taken their marks: until it ends no other can change what they have (step-marks.sql.ts),
 * so that each chunk may be read by statements of its own. `client` is pipelined (database.ts): while figures of a chunk are made here, PostgreSQL writes the one before and reads the next ones.
 * `seen` gets what the rollouts of each step say.
 */
export async function rebuildSteps(
  client: pg.PoolClient,
  steps: readonly StepToRebuild[],
  seen: (step: StepKey, parts: readonly StepPart[]) => void,
): Promise<void> {
  let from = 0;
  let read: ReadStep[] = [];
  const reads: Promise<ReadStep[]>[] = [];
  const readOn = () => {
    while (reads.length < AHEAD && from < steps.length)
      reads.push(later(readSteps(client, steps.slice(from, (from += stepsAfter(read))), seen)));
  };
  let written = Promise.resolve();
  for (readOn(); reads.length > 0;) {
    read = await reads.shift()!;
    readOn();
    const made = await makeSteps(read);
    await written;
    written = later(writeSteps(client, made));
  }
  await written;
}

/** What is awaited later, or not at all after something else failed: the transaction is rolled back behind it then. */
function later<T>(work: Promise<T>): Promise<T> {
  work.catch(() => {});
  return work;
}

async function readSteps(
  client: pg.PoolClient,
  steps: readonly StepToRebuild[],
  seen: (step: StepKey, parts: readonly StepPart[]) => void,
): Promise<ReadStep[]> {
  const keys = steps.map(({ step }) => step);
  const parts = await selectStepParts(client, keys);
  keys.forEach((step, at) => seen(step, parts[at]!));
  const members = parts.map(membersOf);
  const seqs = members.map(({ seq }) => seq);
  const [uses, groups] = await Promise.all([selectToolUses(client, seqs), selectStoredGroups(client, keys)]);
  return steps.map((step, at) => ({ ...step, parts: parts[at]!, members: members[at]!, uses: uses[at]!, groups: groups[at]! }));
}

/** Other work has its turn in between, some times a step: answers of PostgreSQL, and whoever asks this process for something. */
async function makeSteps(steps: readonly ReadStep[]): Promise<MadeStep[]> {
  const made: MadeStep[] = [];
  for (const { step, version, parts, ruleOf, members, uses, groups: stored } of steps) {
    await turn();
    const { rollups, groups } = rollUpStep(step, parts, ruleOf);
    await turn();
    const tools = toolRollups(members, uses);
    made.push({ step, version, rollups, groups: groupChanges(stored, groups), tools });
  }
  return made;
}

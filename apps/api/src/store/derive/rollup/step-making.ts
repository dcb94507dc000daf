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

/** A step whose figures are wanted. */
export interface StepToMake {
  step: StepKey;
  /** Of its run. */
  version: string;
  ruleOf: (envId: number) => SuccessRule;
}

/** With all that its figures are made of. */
interface ReadStep extends StepToMake {
  parts: readonly StepPart[];
  members: Members;
  uses: ToolUses;
  /** As they stand, packed. */
  groups: Buffer;
}

/** Steps of a chunk have about so many rollouts together, and are so many at most: short enough for a statement, long enough that few wait for each other. */
const CHUNK_ROLLOUTS = 8_000;
const CHUNK_STEPS = 16;
/** Of the first chunk: nobody knows yet how large steps are, and while it is read nothing else is done. */
const FIRST_STEPS = 2;
/** Chunks that are being read: PostgreSQL has the next one to do when it is through with one, whatever Node is at. */
const AHEAD = 2;

/** As many steps as make a chunk, if they are as large as those of the chunk before. */
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
export async function remakeSteps(
  client: pg.PoolClient,
  steps: readonly StepToMake[],
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
  steps: readonly StepToMake[],
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

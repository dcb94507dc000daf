import { setImmediate as turn } from 'node:timers/promises';
import type { SuccessRule } from '@palestra/metrics';
import type pg from 'pg';
import { rollUpStep } from './rollup.figures.ts';
import type { StepKey } from './rollup.sql.ts';
import type { StepPart } from './step-columns.ts';
import { type MadeStep, writeSteps } from './step-write.sql.ts';
import { groupChanges, selectStoredGroups } from './stored-groups.sql.ts';
import { type Members, membersOf, toolRollups } from './tool-figures.ts';
import { selectToolUses, type ToolUses } from './tool-uses.sql.ts';

/** A step as its rollouts say it. */
export interface StepToMake {
  step: StepKey;
  /** Of its run. */
  version: string;
  parts: readonly StepPart[];
  ruleOf: (envId: number) => SuccessRule;
}

/** With what else figures need of it. */
interface ReadStep extends StepToMake {
  members: Members;
  uses: ToolUses;
  /** As they stand, packed. */
  groups: Buffer;
}

/** Steps of a chunk have so many rollouts, the last one's apart, and are so many: short enough for a statement, long enough that few wait for each other. */
const CHUNK_ROLLOUTS = 8_000;
const CHUNK_STEPS = 16;

/** In their order. */
function chunksOf(steps: readonly StepToMake[]): StepToMake[][] {
  const chunks: StepToMake[][] = [];
  let rollouts = Infinity;
  for (const step of steps) {
    if (rollouts >= CHUNK_ROLLOUTS || chunks.at(-1)!.length >= CHUNK_STEPS) {
      chunks.push([]);
      rollouts = 0;
    }
    chunks.at(-1)!.push(step);
    for (const { seq } of step.parts) rollouts += seq.length;
  }
  return chunks;
}

/** Makes figures of the steps and writes them, in the transaction of `client`. While figures of a chunk are made, PostgreSQL writes the one before and reads tools and groups of the next. */
export async function remakeSteps(client: pg.PoolClient, steps: readonly StepToMake[]): Promise<void> {
  const chunks = chunksOf(steps);
  let made: MadeStep[] = [];
  let read = await readSteps(client, chunks[0] ?? []);
  for (const next of [...chunks.slice(1), []]) {
    [read, made] = await both(exchange(client, made, next), makeSteps(read));
  }
  await writeSteps(client, made);
}

async function exchange(client: pg.PoolClient, made: readonly MadeStep[], next: readonly StepToMake[]): Promise<ReadStep[]> {
  await writeSteps(client, made);
  return readSteps(client, next);
}

/** Once both are over: a statement that the other one left behind would come after the transaction has ended. */
async function both<One, Other>(one: Promise<One>, other: Promise<Other>): Promise<[One, Other]> {
  await Promise.allSettled([one, other]);
  return Promise.all([one, other]);
}

async function readSteps(client: pg.PoolClient, steps: readonly StepToMake[]): Promise<ReadStep[]> {
  if (steps.length === 0) return [];
  const members = steps.map(({ parts }) => membersOf(parts));
  const uses = await selectToolUses(
    client,
    members.map(({ seq }) => seq),
  );
  const groups = await selectStoredGroups(
    client,
    steps.map(({ step }) => step),
  );
  return steps.map((step, at) => ({ ...step, members: members[at]!, uses: uses[at]!, groups: groups[at]! }));
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

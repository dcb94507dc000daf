import { setTimeout as sleep } from 'node:timers/promises';
import pMap from 'p-map';
import { type GroupResult, PalestraApiError, type PalestraClient, playGroup } from '@palestra/client';
import { DEMO_RUNS, DEMO_TAG, type RolloutRow } from '@palestra/protocol';
import { breakEnvironment, registerEnvironment } from './faulty-environment.ts';
import { BROKEN_STEP, type DemoGroup, planDemo, SAMPLES } from './plan.ts';

/** Groups at the same time. Few, so that the calls of other clients do not wait. */
const CONCURRENCY = 3;
const PAGE = 100;
/** How long the figures of an interrupted demo may take. */
const SETTLE_MS = 30_000;

export interface DemoProgress {
  total(groups: number): void;
  played(group: DemoGroup, result: GroupResult): void;
}

/** Plays the groups that are missing: all of them, or the rest after an interruption. */
export async function playDemo(client: PalestraClient, progress: DemoProgress, signal: AbortSignal): Promise<void> {
  const ctf = await registerEnvironment(client);
  const stored = await storedGroups(client, signal);
  const steps = planDemo().map((groups) => groups.filter((group) => !stored.has(keyOf(group, ctf))));
  progress.total(steps.flat().length);
  for (const [step, groups] of steps.entries()) {
    if (groups.length === 0) continue;
    if (step === BROKEN_STEP) await breakEnvironment(client, ctf);
    const play = async (group: DemoGroup) => {
      const result = await playGroup(client, optionsOf(group, ctf, signal));
      for (const sample of result.samples) if (!sample.scored && isRefusal(sample.error)) throw sample.error;
      progress.played(group, result);
    };
    await pMap(groups, play, { concurrency: CONCURRENCY, signal });
    await client.rollouts.flush();
    if (step === 0) await tagRuns(client);
  }
  if (steps.flat().length > 0) for (const run of DEMO_RUNS) await client.runs.change(run, { finished: true });
}

/** The key was revoked, so that every other episode would fail, too. */
const isRefusal = (error: Error): boolean => error instanceof PalestraApiError && error.status === 401;

function optionsOf({ run, step, evaluation, environment, split, index, maxTurns, cast }: DemoGroup, ctf: string, signal: AbortSignal) {
  const version = step < BROKEN_STEP ? 1 : 2;
  const name = environment === 'ctf' ? `${ctf}@${version}` : 'palestra/whodunit';
  return {
    environment: name,
    split,
    index,
    samples: cast.length,
    policy: (turn: Parameters<DemoGroup['cast'][number]>[0]) => cast[turn.sample]!(turn),
    maxTurns,
    signal,
    record: {
      runName: run,
      rolloutName: `${environment}-${split}-${index}`,
      step,
      runInfo: { model_name: run.replace('demo-', 'scripted-'), run_type: evaluation ? 'eval' : 'train', framework: 'palestra-demo' },
      rolloutInfo: { current_step: step, harness: 'palestra demo' },
      metadata: { n_samples: cast.length },
    },
  };
}

const keyOf = ({ run, step, split, environment, index }: DemoGroup, ctf: string): string =>
  `${run} ${step} ${split} ${environment === 'ctf' ? ctf : 'palestra/whodunit'} ${index}`;

/** Keys of the complete groups. Erases the rollouts of the others. */
async function storedGroups(client: PalestraClient, signal: AbortSignal): Promise<Set<string>> {
  const complete = new Set<string>();
  for (const run of DEMO_RUNS) {
    const groups = new Map<string, RolloutRow[]>();
    for (const rollout of await rolloutsOf(client, run, signal)) {
      const key = [run, rollout.step, rollout.split, rollout.environment, rollout.task_index].join(' ');
      groups.set(key, [...(groups.get(key) ?? []), rollout]);
    }
    for (const [key, rollouts] of groups) {
      if (rollouts.length === SAMPLES && rollouts.every(({ stop }) => stop !== null)) complete.add(key);
      else for (const { id } of rollouts) await client.runs.deleteRollout(id);
    }
  }
  return complete;
}

async function rolloutsOf(client: PalestraClient, run: string, signal: AbortSignal): Promise<RolloutRow[]> {
  try {
    const deadline = Date.now() + SETTLE_MS;
    // A rollout is in no list before it is derived.
    while ((await client.runs.get(run)).pending !== null && Date.now() < deadline) await sleep(200, undefined, { signal });
    const rows: RolloutRow[] = [];
    for (;;) {
      const { rollouts, total } = await client.runs.rollouts(run, { limit: PAGE, offset: rows.length });
      rows.push(...rollouts);
      if (rollouts.length === 0 || rows.length >= total) return rows;
    }
  } catch (error) {
    if (error instanceof PalestraApiError && error.code === 'run_not_found') return [];
    throw error;
  }
}

async function tagRuns(client: PalestraClient): Promise<void> {
  for (const run of DEMO_RUNS) await client.runs.change(run, { tags: [DEMO_TAG] });
}

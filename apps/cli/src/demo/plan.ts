import { createHash } from 'node:crypto';
import type { Policy } from '@palestra/client';
import { DEMO_RUNS } from '@palestra/protocol';
import { ctfPlayers } from './ctf-players.ts';
import { whodunitPlayers } from './whodunit-players.ts';

/** What the demo plays: two runs of twenty steps over two environments. Nothing in it is random. */

const STEPS = 20;
export const SAMPLES = 4;
/** Tasks of an environment per step; they come round again after five steps. */
const TASKS = 2;
const POOLS = {
  whodunit: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
  // Each but the first needs the tool `decode`.
  ctf: [0, 1, 2, 3, 4, 6, 7, 8, 9, 11],
};
/** The turns of both environments. Calls with invalid arguments do not count there. */
const MAX_TURNS = { whodunit: 10, ctf: 10 };
/** Evaluation on the validation split, after these steps. */
const EVALUATED = [0, 10, 19];

/** From this step on the second version of the environment runs, whose tool `decode` fails. */
export const BROKEN_STEP = 12;
/** From here on the learner decodes by itself. */
const RECOVERED_STEP = 16;
/** The steps in which the learner tends to call `accuse` with wrong argument names. */
const CARELESS_STEPS = [4, 5];

type Run = (typeof DEMO_RUNS)[number];
export type DemoEnvironment = 'whodunit' | 'ctf';

/** Samples of one task, played at the same time. */
export interface DemoGroup {
  run: Run;
  step: number;
  evaluation: boolean;
  environment: DemoEnvironment;
  split: 'train' | 'validation';
  index: number;
  maxTurns: number;
  /** One player per sample. */
  cast: Policy[];
}

/** The groups of each step, in order. */
export function planDemo(): DemoGroup[][] {
  return Array.from({ length: STEPS }, (_, step) => DEMO_RUNS.flatMap((run) => groupsOf(run, step)));
}

function groupsOf(run: Run, step: number): DemoGroup[] {
  const group = (environment: DemoEnvironment, evaluation: boolean, index: number): DemoGroup => ({
    run,
    step,
    evaluation,
    environment,
    split: evaluation ? 'validation' : 'train',
    index,
    maxTurns: MAX_TURNS[environment],
    cast: Array.from({ length: SAMPLES }, (_sample, sample) => playerOf(run, step, environment, index, sample, evaluation)),
  });
  const trained = Array.from({ length: TASKS }, (_, task) => step * TASKS + task).flatMap((turn) =>
    (['whodunit', 'ctf'] as const).map((environment) => {
      const pool = POOLS[environment];
      return group(environment, false, pool[turn % pool.length]!);
    }),
  );
  const evaluated = EVALUATED.includes(step) ? [group('whodunit', true, 0), group('whodunit', true, 1)] : [];
  return [...trained, ...evaluated];
}

function playerOf(run: Run, step: number, environment: DemoEnvironment, index: number, sample: number, evaluation: boolean): Policy {
  const place = `${environment} ${evaluation} ${index}`;
  const learns = run === 'demo-learner';
  // A task is easier or harder for every policy.
  const ease = 0.4 * (unit(place) - 0.5);
  const skilled = unit(`${run} ${step} ${place} ${sample}`) < (learns ? learnedSkill(step) : 0.3) + ease;
  const taste = unit(`taste ${run} ${step} ${place} ${sample}`);
  if (environment === 'whodunit') {
    if (learns && !evaluation && CARELESS_STEPS.includes(step) && taste < 0.6) return whodunitPlayers.careless;
    if (skilled) return whodunitPlayers.detective;
    return taste < 0.4 ? whodunitPlayers.gossip : taste < 0.8 ? whodunitPlayers.hasty : whodunitPlayers.daydreamer;
  }
  if (skilled) return learns && step >= RECOVERED_STEP ? ctfPlayers.expert : ctfPlayers.operator;
  return taste < 0.45 ? ctfPlayers.explorer : taste < 0.75 ? ctfPlayers.guesser : ctfPlayers.talker;
}

/** The share of skilled episodes of an average task after so many steps: a logistic curve from 0.1 to 1.15, at which all tasks are learned. */
const learnedSkill = (step: number): number => 0.1 + 1.05 / (1 + Math.exp((4 - step) / 1.2));

/** A number in [0, 1) that depends on the text only. */
const unit = (text: string): number => createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32;

import { randomUUID } from 'node:crypto';
import type { SharedPalestra } from '../support/palestra.ts';

/** A seeded run with every case that figures must handle, and the rollouts in it. */
export const runName = 'overview suite, seeded';
export const STEPS = 8;
const TASKS = 3;
const SAMPLES = 4;
/** Totals of the first environment are in [0, 1], those of the second are not, so their success rules differ. */
export const ENVIRONMENTS = ['acme/solve', 'acme/points'] as const;

/** A rollout as its trainer uploads it. */
export interface Raw {
  step: number;
  environment: string;
  group: string;
  stop: string;
  turns: number;
  /** Reward of each tool result, in order; null: none. */
  rewards: (number | null)[];
  errors: number;
  tokens: { output: number; tool: number };
}

function generator(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1_664_525 + 1_013_904_223) >>> 0) / 2 ** 32;
}

/** Rewards of the steps of an episode that ends solved, half solved or unsolved. */
function rewardsOf(kind: 'solved' | 'part' | 'none' | 'unscored', turns: number, environment: string): (number | null)[] {
  const rewards: (number | null)[] = Array.from({ length: turns }, () => null);
  if (kind === 'unscored') return rewards;
  // A penalty that is regained: the positive sum exceeds the sum.
  if (turns > 2) [rewards[0], rewards[1]] = [-0.25, 0.25];
  const last = { solved: environment === ENVIRONMENTS[0] ? 1 : 1.5, part: 0.28, none: 0 }[kind];
  rewards[turns - 1] = last;
  return rewards;
}

export function makeRun(): Raw[] {
  const random = generator(20_261_121);
  const rollouts: Raw[] = [];
  for (let step = 0; step < STEPS; step += 1)
    for (const environment of ENVIRONMENTS)
      for (let task = 0; task < TASKS; task += 1)
        for (let sample = 0; sample < SAMPLES; sample += 1) {
          // One group of the last step is incomplete.
          if (step === STEPS - 1 && task === 0 && environment === ENVIRONMENTS[0] && sample === 3) continue;
          const skill = (step + 1) / (STEPS + 2) + (task - 1) * 0.25;
          const roll = random();
          // If one sample is unscored, another one succeeds, so that SkyRL's pass is determined.
          const unscored = step % 3 === 1 && task === 1 && sample === 3;
          const solved = (step % 3 === 1 && task === 1 && sample === 0) || roll < skill;
          const kind = unscored ? 'unscored' : solved ? 'solved' : roll < skill + 0.2 ? 'part' : 'none';
          const turns = 1 + Math.floor(random() * 4);
          const stop = unscored ? 'infra_error' : kind === 'none' && random() < 0.5 ? 'max_turns' : 'finished';
          const rewards = rewardsOf(kind, turns, environment);
          const errors = random() < 0.2 ? 1 : 0;
          const tokens = { output: 100 + Math.floor(random() * 400), tool: 50 + Math.floor(random() * 100) };
          rollouts.push({ step, environment, group: `${environment}-${task}-${step}`, stop, turns, rewards, errors, tokens });
        }
  return rollouts;
}

/** The events that a trainer posts. */
export async function upload(palestra: SharedPalestra, rollouts: readonly Raw[], run = runName): Promise<void> {
  const samples = new Map<string, number>();
  const events = rollouts.flatMap(({ step, environment, group, stop, turns, rewards, errors, tokens }) => {
    const id = randomUUID();
    const sample = samples.get(group) ?? 0;
    samples.set(group, sample + 1);
    const timestamp = Date.now();
    const metadata = {
      step,
      group_id: group,
      sample_idx: sample,
      n_samples: SAMPLES,
      phase: 'train',
      stop_reason: stop,
      num_turns: turns,
      tokens,
    };
    const start = {
      eventType: 'rollout',
      eventId: id,
      timestamp,
      runName: run,
      rolloutName: `${group}-${sample}`,
      environment,
      split: 'train',
      metadata,
    };
    const messages = rewards.flatMap((reward, turn) => {
      const callId = `call-${turn}`;
      const failed = turn < errors;
      return [
        { type: 'tool_call', name: 'act', callId, content: '{}' },
        {
          type: 'tool_result',
          callId,
          content: failed ? 'Error: no' : 'yes',
          ...(failed && { metadata: { is_error: true } }),
          ...(reward !== null && { reward }),
          isFinished: stop === 'finished' && turn === rewards.length - 1,
        },
      ];
    });
    const typed = messages.map((message, index) => ({
      eventType: 'message',
      eventId: randomUUID(),
      rolloutEventId: id,
      timestamp,
      index,
      isFinished: false,
      metadata: {},
      ...message,
    }));
    return [start, ...typed];
  });
  for (let at = 0; at < events.length; at += 1000) {
    const answer = await fetch(`${palestra.url}/v1/rollouts`, {
      method: 'POST',
      headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ events: events.slice(at, at + 1000) }),
    });
    if (!answer.ok) throw new Error(`POST /v1/rollouts: ${answer.status} ${await answer.text()}`);
  }
}

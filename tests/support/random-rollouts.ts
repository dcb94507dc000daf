import { randomUUID } from 'node:crypto';
import { randomOf } from './random.ts';

/** Random runs, as trainers upload them. */
export interface RandomRun {
  name: string;
  /** Events by rollout, in the order of the client. */
  rollouts: { id: string; events: Record<string, unknown>[] }[];
}

const SHAPES = ['contract', 'skyrl', 'slime'] as const;
const ENVIRONMENTS = ['acme/one', 'acme/two'];
const HASHES = ['a1b2c3d4e5f6', 'ffeeddccbbaa', '0123456789ab'];
const STOPS = ['finished', 'max_turns', 'max_tokens', 'no_tool_call', 'error', 'strange'];

/**
 * Runs of `count` rollouts each: with reported steps, as SkyRL uploads (no steps) and as slime does (tasks by hash); several
 * environments, groups, missing rewards, rewards that leave [0, 1] only temporarily or at the end (`outside`), failing tools.
 */
export function randomRuns(seed: number, count: number, outside: boolean): RandomRun[] {
  const random = randomOf(seed);
  return SHAPES.map((shape) => ({
    name: `${shape}-${seed}`,
    rollouts: Array.from({ length: count }, (_, at) => randomRollout(random, shape, `${shape}-${seed}`, at, outside)),
  }));
}

function randomRollout(random: () => number, shape: (typeof SHAPES)[number], runName: string, at: number, outside: boolean) {
  const id = randomUUID();
  const pick = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
  const environment = pick(ENVIRONMENTS);
  const split = 'train';
  const task = Math.floor(random() * 4);
  const place = environment.replaceAll('/', '-');
  const turns = Math.floor(random() * 4);
  const rewards = rewardsOf(random, turns, outside);
  const total = rewards.reduce<number>((sum, reward) => sum + (reward ?? 0), 0);
  const time = 1_795_000_000_000 + at * 1_000;
  const start = { eventType: 'rollout', eventId: id, timestamp: time, runName, environment, split };
  const events: Record<string, unknown>[] = [];
  if (shape === 'contract') {
    const step = Math.floor(random() * 5);
    const group = { group_id: `${step}-${environment}-${task}`, sample_idx: at, n_samples: 4, phase: random() < 0.8 ? 'train' : 'eval' };
    events.push({ ...start, rolloutName: `r${at}`, step, metadata: random() < 0.9 ? group : {}, rollout_info: { task_index: task } });
  } else if (shape === 'skyrl') {
    const metadata = { stop_reason: pick(['finished', 'no_tool_call']), total_reward: total, num_turns: turns };
    events.push({ ...start, rolloutName: `${place}-${split}-${task}`, metadata });
  } else {
    const metadata = { stop_reason: pick(STOPS), num_tool_calls: turns, ...(random() < 0.5 ? { reward_sum: total } : {}) };
    events.push({ ...start, rolloutName: `${place}-${pick(HASHES)}-${id.slice(0, 8)}`, metadata });
  }
  const message = (index: number, rest: object) => {
    const facts = {
      eventType: 'message',
      eventId: randomUUID(),
      rolloutEventId: id,
      timestamp: time + index,
      index,
      isFinished: false,
      metadata: {},
    };
    events.push({ ...facts, ...rest });
  };
  message(0, { type: 'user_message', content: `task ${task}` });
  rewards.forEach((reward, turn) => {
    const callId = `call-${turn}`;
    message(3 * turn + 1, { type: 'assistant_message', content: `turn ${turn}` });
    message(3 * turn + 2, { type: 'tool_call', name: pick(['look', 'answer']), callId, content: '{}' });
    const result = random() < 0.15 ? { content: 'Error: it broke', metadata: { is_error: true } } : { content: 'fine' };
    const isFinished = turn === turns - 1 && random() < 0.7;
    message(3 * turn + 3, { type: 'tool_result', callId, ...result, ...(reward === null ? {} : { reward }), isFinished });
  });
  if (random() < 0.3) {
    events.push({
      eventType: 'rollout_update',
      eventId: id,
      timestamp: time + 500,
      rollout_info: { num_turns: turns, stop_reason: pick(STOPS) },
    });
  }
  return { id, events };
}

/** Sums are in [0, 1] unless `outside`; partial sums may leave it. */
function rewardsOf(random: () => number, turns: number, outside: boolean): (number | null)[] {
  if (turns === 0) return [];
  const rewards: (number | null)[] = Array.from({ length: turns }, () => null);
  if (random() < 0.2) return rewards;
  rewards[turns - 1] = Math.round(random() * 4) / 4;
  if (turns >= 3 && random() < 0.3) [rewards[0], rewards[1]] = [1.5, -1.5];
  if (outside && random() < 0.05) rewards[turns - 1] = random() < 0.5 ? 3 : -2;
  return rewards;
}

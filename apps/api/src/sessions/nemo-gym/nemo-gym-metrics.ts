import { isObject, type JsonObject, type JsonValue, toFiniteNumber } from '@palestra/protocol';

const TASK = '_ng_task_index';

/**
 * `POST /aggregate_metrics`: statistics of the rewards, with the names of `compute_aggregate_metrics` in `nemo_gym/reward_profile.py`. Masked
 * samples count as coverage only.
 */
export function aggregateMetrics(body: JsonValue): JsonObject {
  const list = isObject(body) && Array.isArray(body['verify_responses']) ? body['verify_responses'].filter(isObject) : [];
  const scored = list.filter((sample) => sample['mask_sample'] !== true);
  const coverage = scored.length === list.length ? {} : coverageOf(list, scored);
  const overall = statistics(scored.map(rewardOf));
  const means = Object.fromEntries(Object.entries(overall).filter(([name]) => name.startsWith('mean/')));
  return {
    group_level_metrics: [...byTask(scored)].map(([task, samples]) => ({ [TASK]: task, ...statistics(samples.map(rewardOf)) })),
    agent_metrics: { ...overall, ...coverage },
    key_metrics: { ...means, ...coverage },
    repeat_level_metrics: [],
  };
}

const rewardOf = (sample: JsonObject): number => toFiniteNumber(sample['reward']) ?? 0;
const taskOf = (sample: JsonObject): number => toFiniteNumber(sample[TASK]) ?? 0;

function byTask(samples: JsonObject[]): Map<number, JsonObject[]> {
  const tasks = new Map<number, JsonObject[]>();
  for (const sample of samples.toSorted((a, b) => taskOf(a) - taskOf(b))) {
    const known = tasks.get(taskOf(sample));
    if (known === undefined) tasks.set(taskOf(sample), [sample]);
    else known.push(sample);
  }
  return tasks;
}

/** The standard deviation is that of a sample (n - 1), as pandas computes it. */
function statistics(values: number[]): Record<string, number> {
  const count = values.length;
  if (count === 0) return {};
  const sorted = values.toSorted((a, b) => a - b);
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const median = (sorted[Math.floor((count - 1) / 2)]! + sorted[Math.floor(count / 2)]!) / 2;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return {
    'mean/reward': mean,
    'max/reward': sorted.at(-1)!,
    'min/reward': sorted[0]!,
    'median/reward': median,
    ...(count > 1 && { 'std/reward': Math.sqrt(squares / (count - 1)) }),
  };
}

function coverageOf(all: JsonObject[], scored: JsonObject[]): Record<string, number> {
  const [tasks, measured] = [byTask(all).size, byTask(scored).size];
  return {
    'coverage/measured_rollouts': scored.length,
    'coverage/masked_rollouts': all.length - scored.length,
    'coverage/measured_tasks': measured,
    'coverage/fully_masked_tasks': tasks - measured,
  };
}

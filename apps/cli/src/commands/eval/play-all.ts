import pRetry from 'p-retry';
import type { PalestraClient } from '@palestra/client';
import type { RolloutEvent } from '@palestra/protocol';
import { BatchSender } from '../../batch-sender.ts';
import { type EpisodeId, type EpisodeOptions, type EpisodeResult, playEpisode } from './episode.ts';
import type { Plan } from './plan.ts';
import type { RolloutLog } from './rollout-log.ts';

/** Attempts at an episode that fails by infrastructure. */
const ATTEMPTS = 3;
const RETRY_MS = 1_000;
/** After so many episodes without a score in a row, by infrastructure, the rest would fail, too. */
const MAX_FAILED = 20;

/**
 * Plays the missing episodes, uploads each when it has ended, and calls `onStored`. `samples`: episodes per task. Rejects when the signal aborts or when no further episode can
 * succeed; the sessions of the others are closed then.
 */
export async function playAll(
  client: PalestraClient,
  plan: Plan,
  { samples, concurrency }: { samples: number; concurrency: number },
  signal: AbortSignal,
  onStored: (result: EpisodeResult) => void,
): Promise<EpisodeResult[]> {
  const failed = new AbortController();
  const stop = AbortSignal.any([signal, failed.signal]);
  const queue = [...plan.missing];
  const { environment, variant, split, policy } = plan;
  const episode = { environment, variant, split, policy: policy.play, maxTurns: policy.maxTurns };
  const results: EpisodeResult[] = [];
  let failedInRow = 0;
  const playOne = async (id: EpisodeId) => {
    const { result, log } = await attempt(client, id, episode, stop);
    await upload(client, eventsOf(plan, samples, log, result), result);
    results.push(result);
    onStored(result);
    failedInRow = result.failure === 'infrastructure' ? failedInRow + 1 : 0;
    if (failedInRow >= MAX_FAILED && queue.length > 0)
      throw new Error(`${failedInRow} episodes in a row failed by infrastructure. The last one: ${result.error}`);
  };
  const work = async () => {
    for (let id = queue.shift(); id !== undefined && !stop.aborted; id = queue.shift()) {
      await playOne(id).catch((error: unknown) => failed.abort(error));
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, queue.length) }, work));
  stop.throwIfAborted();
  return results;
}

class InfrastructureFailure extends Error {}

async function attempt(client: PalestraClient, id: EpisodeId, episode: EpisodeOptions, signal: AbortSignal) {
  let last: Awaited<ReturnType<typeof playEpisode>>;
  const play = async () => {
    last = await playEpisode(client, id, episode, signal);
    if (last.result.failure === 'infrastructure') throw new InfrastructureFailure();
    return last;
  };
  return pRetry(play, {
    retries: ATTEMPTS - 1,
    minTimeout: RETRY_MS,
    randomize: true,
    signal,
    shouldRetry: ({ error }) => error instanceof InfrastructureFailure,
  }).catch((error: unknown) => {
    if (error instanceof InfrastructureFailure) return last;
    throw error;
  });
}

function eventsOf(
  { run, name, version, split, variant, policy }: Plan,
  samples: number,
  log: RolloutLog,
  { task, sample, reward, stop, failure, error, turns, tokens }: EpisodeResult,
): RolloutEvent[] {
  const start = {
    runName: run,
    rolloutName: `${name.replaceAll('/', '-')}-${split}-${task}`,
    environment: name,
    split,
    step: 0,
    ...(variant !== undefined && { variant }),
    metadata: { sample_idx: sample, n_samples: samples, phase: 'eval' },
    run_info: { model_name: policy.name, run_type: 'eval', framework: 'palestra-eval' },
    rollout_info: {
      task_index: task,
      current_step: 0,
      harness: 'palestra eval',
      max_turns: policy.maxTurns,
      ...policy.settings,
      ...(version !== null && { env_version: version }),
    },
  };
  return log.events(start, {
    task_index: task,
    stop_reason: stop,
    num_turns: turns,
    ...(tokens && { tokens }),
    ...(reward !== null && { reward_total: reward }),
    ...(failure !== null && { failure_class: failure, error }),
  });
}

/** Batches in order: a rollout whose last event is stored is complete. */
async function upload(client: PalestraClient, events: readonly RolloutEvent[], { task, sample }: EpisodeResult): Promise<void> {
  let refusal: string | null = null;
  const sender = new BatchSender(
    (batch) => client.rollouts.send(batch, { history: true }),
    ({ status, detail }) => {
      if (status === 'rejected') refusal ??= detail ?? 'without a reason';
    },
    1,
  );
  for (const event of events) await sender.add('', event);
  await sender.flush();
  if (refusal !== null) throw new Error(`The service refused a message of task ${task}, sample ${sample}: ${refusal}`);
}

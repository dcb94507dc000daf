import { setTimeout as sleep } from 'node:timers/promises';
import pMap from 'p-map';
import { PalestraApiError, type PalestraClient } from '@palestra/client';
import { type RolloutHeader, type RolloutRow, type RunView, STOP_REASONS, type StopReason } from '@palestra/protocol';
import type { EpisodeId, EpisodeResult } from './episode.ts';

const PAGE = 500;
const SETTLE_MS = 120_000;
const CONCURRENT_READS = 8;

/** A stored episode of a run. */
export interface StoredEpisode extends EpisodeResult {
  rollout: string;
  model: string | null;
  /** Version of the environment. */
  version: number | null;
  /** The upload was interrupted, or the infrastructure failed: it must be played again. */
  isMissing: boolean;
}

/** The run, or null. */
export async function findRun(client: PalestraClient, name: string): Promise<RunView | null> {
  try {
    return await client.runs.get(name);
  } catch (error) {
    if (error instanceof PalestraApiError && error.code === 'run_not_found') return null;
    throw error;
  }
}

/** Waits until the lists and figures contain every stored event of the run. */
export async function waitForFigures(client: PalestraClient, run: string, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + SETTLE_MS;
  for (;;) {
    const { pending } = await client.runs.get(run);
    if (pending === null) return;
    if (Date.now() > deadline)
      throw new Error(`The service has not processed ${pending} rollouts of ${run} yet. Try again later with --resume.`);
    await sleep(200, undefined, { signal });
  }
}

/** The episodes that the run has of these tasks, each once. Others, such as those of a trainer, are ignored. */
export async function storedEpisodes(
  client: PalestraClient,
  run: string,
  where: { environment: string; split: string; variant: string | undefined },
  signal: AbortSignal,
): Promise<StoredEpisode[]> {
  await waitForFigures(client, run, signal);
  const rows = new Map<string, RolloutRow>();
  let cursor: string | undefined;
  do {
    signal.throwIfAborted();
    const page = await client.runs.rollouts(run, { limit: PAGE, ...(cursor !== undefined && { cursor }) });
    for (const row of page.rollouts) {
      const isHere = row.environment === where.environment && row.split === where.split && row.variant === (where.variant ?? null);
      if (isHere && row.task_index !== null && row.sample !== null) rows.set(keyOf({ task: row.task_index, sample: row.sample }), row);
    }
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  return pMap([...rows.values()], async ({ id }) => toStored(await client.runs.rolloutHeader(id)), {
    concurrency: CONCURRENT_READS,
    signal,
  });
}

export const keyOf = ({ task, sample }: EpisodeId): string => `${task}/${sample}`;

function toStored(header: RolloutHeader): StoredEpisode {
  const info = header.rollout_info ?? {};
  const { prompt, output } = (info['tokens'] ?? {}) as { prompt?: number; output?: number };
  const stop = STOP_REASONS.find((one): one is StopReason => one === header.stop) ?? 'unknown';
  const isFailed = header.failure_class === 'infrastructure' || stop === 'infra_error' || stop === 'timeout';
  return {
    rollout: header.id,
    model: header.model,
    version: typeof info['env_version'] === 'number' ? info['env_version'] : null,
    isMissing: isFailed || info['stop_reason'] === undefined,
    task: header.task_index!,
    sample: header.sample!,
    reward: header.reward,
    stop,
    failure: isFailed ? 'infrastructure' : header.failure_class === 'environment' || stop === 'env_error' ? 'environment' : null,
    error: typeof info['error'] === 'string' ? info['error'] : null,
    turns: header.turns,
    calls: header.num_tool_calls,
    refused: header.num_errors,
    tokens: prompt === undefined || output === undefined ? null : { prompt, output },
  };
}

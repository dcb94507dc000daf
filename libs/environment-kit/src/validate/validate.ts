import { readFileSync } from 'node:fs';
import type { EnvironmentReport } from '@palestra/protocol';
import type { Environment } from '../definition.ts';
import { environmentSubject, type Subject } from '../play/subject.ts';
import { rewardRangeOf, runChecks } from './checks.ts';
import { collectEvidence } from './evidence.ts';
import { scorePlayers } from './players.ts';

export interface ValidateOptions {
  /** Tasks of each split that the checks play. Default 10. */
  tasks?: number;
  /** Tasks that each player plays for its score; 0 scores none. Default 100. */
  playerTasks?: number;
  /** Time for the scores: a slow environment is scored on fewer tasks. Default 120 000. */
  playerBudgetMs?: number;
  /** Split of the scores. Default: the first of type `test`, else the first one. */
  playerSplit?: string | undefined;
  /** Episodes that are repeated to check determinism. Default 4. */
  replays?: number;
  /** Deadline of each session from the request to the prompt. Default 30 000. */
  setupTimeoutMs?: number;
  /** A player that makes more calls in an episode is stopped. Default 1 000. */
  maxCalls?: number;
  signal?: AbortSignal | undefined;
}

/**
 * Validates a definition in this process: the checks of OpenEnv's RFC 008 that need no model, and what each player reaches. A broken
 * environment is a failed check, not an error.
 */
export async function validateEnvironment(environment: Environment, options: ValidateOptions = {}): Promise<EnvironmentReport> {
  const subject = environmentSubject(environment);
  try {
    return await validateSubject(subject, options);
  } finally {
    await subject.close();
  }
}

/** Like `validateEnvironment`, for an environment on a server too. */
export async function validateSubject(subject: Subject, options: ValidateOptions = {}): Promise<EnvironmentReport> {
  const {
    tasks = 10,
    playerTasks = 100,
    playerBudgetMs = 120_000,
    playerSplit,
    replays = 4,
    setupTimeoutMs = 30_000,
    maxCalls = 1_000,
    signal,
  } = options;
  const evidence = await collectEvidence(subject, { tasks, replays, setupTimeoutMs, maxCalls, signal });
  const range = rewardRangeOf(evidence);
  return {
    created_at: new Date().toISOString(),
    kit: kitVersion(),
    checks: runChecks(evidence),
    players:
      playerTasks === 0
        ? []
        : await scorePlayers(subject, { split: playerSplit, tasks: playerTasks, budgetMs: playerBudgetMs, maxCalls, range, signal }),
    reward_range: subject.rewardRange === null ? null : [...range],
  };
}

function kitVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };
  return version;
}

import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { Metrics } from '../../platform/telemetry/metrics.ts';
import { LOGGER } from '../../platform/tokens.ts';

/** After so long they are tried again. */
const RETRY_MS = 10 * 60_000;
/** Of a kind; more than so many are no fault of theirs. */
const MAX_MEMBERS = 1_000;

/** Runs every stage, also when one before it failed; then throws what failed first. Answers whether any has more to do. */
export async function everyStage(...stages: (() => Promise<boolean>)[]): Promise<boolean> {
  const failures: unknown[] = [];
  let more = false;
  for (const stage of stages) {
    try {
      if (await stage()) more = true;
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return more;
}

type Kind = 'rollout' | 'run' | 'step';

/**
 * What could not be derived by a fault of its own waits here, and no longer stops everything behind it. In this process: another replica,
 * and this one after a restart, find out for themselves.
 */
@Injectable()
export class SetAside {
  readonly #until: Record<Kind, Map<string, number>> = { rollout: new Map(), run: new Map(), step: new Map() };

  constructor(
    metrics: Metrics,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    metrics.gauge('palestra_derive_set_aside', 'What could not be derived by a fault of its own, and is tried again', ['kind'], (gauge) => {
      for (const kind of Object.keys(this.#until) as Kind[]) gauge.set({ kind }, this.members(kind).length);
    });
  }

  /** Those whose time has not come. */
  members(kind: Kind): string[] {
    const now = Date.now();
    const all = this.#until[kind];
    for (const [key, until] of all) if (until <= now) all.delete(key);
    return [...all.keys()];
  }

  /** `name`: as it is called in the log. Throws the error itself when too many are here. */
  add(kind: Kind, key: string, error: unknown, name = key): void {
    const all = this.#until[kind];
    if (all.size >= MAX_MEMBERS) throw error;
    all.set(key, Date.now() + RETRY_MS);
    this.logger.error({ err: error, [kind]: name }, `a ${kind} cannot be derived; it is tried again after ${RETRY_MS / 60_000} minutes`);
  }
}

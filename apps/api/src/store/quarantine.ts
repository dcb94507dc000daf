import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { Metrics } from '../platform/telemetry/metrics.ts';
import { LOGGER } from '../platform/tokens.ts';

/** A quarantined item is tried again after this time. */
const RETRY_MS = 10 * 60_000;
/** Bound per kind. With more failures the fault is not in the items. */
const MAX_MEMBERS = 1_000;

/** Runs all stages even if one fails, then throws the first error. Returns whether any stage has more work. */
export async function runAllStages(...stages: (() => Promise<boolean>)[]): Promise<boolean> {
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
 * Items whose derivation fails by their own fault. They are skipped for a while, so that they do not block the items behind them. The list is
 * per process and in memory: other replicas, and this one after a restart, build their own.
 */
@Injectable()
export class Quarantine {
  readonly #until: Record<Kind, Map<string, number>> = { rollout: new Map(), run: new Map(), step: new Map() };

  constructor(
    metrics: Metrics,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    metrics.gauge('palestra_derive_set_aside', 'What could not be derived by a fault of its own, and is tried again', ['kind'], (gauge) => {
      for (const kind of Object.keys(this.#until) as Kind[]) gauge.set({ kind }, this.members(kind).length);
    });
  }

  /** The keys that are still quarantined. */
  members(kind: Kind): string[] {
    const now = Date.now();
    const all = this.#until[kind];
    for (const [key, until] of all) if (until <= now) all.delete(key);
    return [...all.keys()];
  }

  /** `name`: the item's name in the log. Throws `error` if the quarantine is full. */
  add(kind: Kind, key: string, error: unknown, name = key): void {
    const all = this.#until[kind];
    if (all.size >= MAX_MEMBERS) throw error;
    all.set(key, Date.now() + RETRY_MS);
    this.logger.error({ err: error, [kind]: name }, `a ${kind} cannot be derived; it is tried again after ${RETRY_MS / 60_000} minutes`);
  }
}

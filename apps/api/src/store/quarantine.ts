import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { Metrics } from '../platform/telemetry/metrics.ts';
import { LOGGER } from '../platform/tokens.ts';

/** A quarantined item is tried again after the first of these times, and after twice the last delay each time that it fails again. */
const FIRST_RETRY_MS = 60_000;
const LAST_RETRY_MS = 10 * 60_000;
/** Bound per kind. With more failures the fault is not in the items. */
const MAX_MEMBERS = 1_000;
const NAMES = {
  rollout: 'a rollout cannot be derived',
  run: 'the steps of a run cannot be inferred',
  step: 'the figures of a step cannot be computed',
  search: 'a rollout cannot be made searchable',
  block: 'a block of the search index cannot be collected',
} as const;

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

type Kind = keyof typeof NAMES;

interface Member {
  until: number;
  delayMs: number;
}

/**
 * Items whose derivation fails by their own fault, or takes too long. They are skipped for a while, longer after each failure, so that they
 * do not block the items behind them. The list is per process and in memory: other replicas, and this one after a restart, build their own.
 */
@Injectable()
export class Quarantine {
  readonly #members: Record<Kind, Map<string, Member>> = {
    rollout: new Map(),
    run: new Map(),
    step: new Map(),
    search: new Map(),
    block: new Map(),
  };

  constructor(
    metrics: Metrics,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {
    metrics.gauge(
      'palestra_derive_set_aside',
      'Rollouts that could not be derived because of their content, and are tried again',
      ['kind'],
      (gauge) => {
        for (const kind of Object.keys(this.#members) as Kind[]) gauge.set({ kind }, this.members(kind).length);
      },
    );
  }

  /** The keys that are still quarantined. */
  members(kind: Kind): string[] {
    const now = Date.now();
    const all = this.#members[kind];
    // One that was not added again in this time was derived.
    for (const [key, { until }] of all) if (until + LAST_RETRY_MS <= now) all.delete(key);
    return [...all].filter(([, { until }]) => until > now).map(([key]) => key);
  }

  /** `name`: the item's name in the log. Throws `error` if the quarantine is full. */
  add(kind: Kind, key: string, error: unknown, name = key): void {
    const all = this.#members[kind];
    const previous = all.get(key);
    if (previous === undefined && all.size >= MAX_MEMBERS) throw error;
    const delayMs = previous === undefined ? FIRST_RETRY_MS : Math.min(2 * previous.delayMs, LAST_RETRY_MS);
    all.set(key, { until: Date.now() + delayMs, delayMs });
    this.logger.error({ err: error, [kind]: name }, `${NAMES[kind]}; it is tried again after ${delayMs / 60_000} min`);
  }
}

import { Inject, Injectable } from '@nestjs/common';
import { BlobError } from '@palestra/blobs';
import { PalestraError } from '@palestra/protocol';
import type { Logger } from 'pino';
import { isDatabaseAway, isRolledBack } from '../../platform/database/database-errors.ts';
import { Metrics } from '../../platform/telemetry/metrics.ts';
import { LOGGER } from '../../platform/tokens.ts';

/** After so long they are tried again. */
const RETRY_MS = 10 * 60_000;
/** Of a kind; more than so many are no fault of theirs. */
const MAX_MEMBERS = 1_000;

/** SQLSTATE classes of what a statement was given: cardinality, data, integrity, limits of the program. */
const OF_DATA = /^(21|22|23|54)/;

/** The object store did not answer; what it does not have, or has damaged, is a fault of that one object. */
export function isStoreAway(error: unknown): boolean {
  if (error instanceof BlobError) return error.kind === 'unavailable' || error.kind === 'full';
  return ['AbortError', 'TimeoutError'].includes((error as Error).name);
}

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

/** Whether work failed by what it was done with, so that it fails again, and the same work with other things need not. */
export function isOwnFault(error: unknown): boolean {
  if (isDatabaseAway(error) || isRolledBack(error) || isStoreAway(error) || error instanceof PalestraError) return false;
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code !== 'string' || OF_DATA.test(code);
}

/** Does the work with all members together; where one of them makes it fail, with the others all the same. `left` gets that one. */
export async function withoutFaulty<T>(
  members: readonly T[],
  work: (members: readonly T[]) => Promise<unknown>,
  left: (member: T, error: unknown) => void | Promise<void>,
): Promise<void> {
  try {
    await work(members);
  } catch (error) {
    if (!isOwnFault(error)) throw error;
    if (members.length === 1) return left(members[0]!, error);
    const half = members.length >> 1;
    for (const some of [members.slice(0, half), members.slice(half)]) await withoutFaulty(some, work, left);
  }
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

import { Inject, Injectable } from '@nestjs/common';
import { ANSWER_LIMITS, answerTooLarge } from '@palestra/outbound';
import { SingleFlight } from '@palestra/kit';
import { type EnvironmentDiscoveryView, PalestraError, stringifyJson } from '@palestra/protocol';
import type { Backend } from '@palestra/session';
import { storedDiscovery, type VersionRecord } from './environment.record.ts';
import { EnvironmentRepository } from './environment.repository.ts';

const MAX_AGE_MS = 60_000;
const DEADLINE_MS = 30_000;
const MAX_VARIANTS = 1_000;
/** Maximum per variant. */
const MAX_SPLITS = 200;
/** Variants that are requested from a server at the same time. */
const CONCURRENCY = 8;

/** Reads a server's variants, splits, task counts and tools. A count is null if the server does not return it. */
export async function discover(backend: Backend, signal: AbortSignal): Promise<EnvironmentDiscoveryView> {
  const names = await backend.environments(signal);
  if (names.length > MAX_VARIANTS) throw tooMany(`${names.length} environments`, MAX_VARIANTS);
  const variants: EnvironmentDiscoveryView['variants'] = [];
  let size = 0;
  // A few at a time, so that a server cannot make us request and keep any amount.
  for (let first = 0; first < names.length; first += CONCURRENCY) {
    const batch = names.slice(first, first + CONCURRENCY);
    const found = await Promise.all(batch.map((name, offset) => discoverVariant(backend, name, first + offset === 0, signal)));
    size += stringifyJson(found).length;
    if (size > ANSWER_LIMITS.metadata) throw answerTooLarge(ANSWER_LIMITS.metadata);
    variants.push(...found);
  }
  // A view for users: plain numbers suffice, and a jsonb column accepts no NUL.
  const text = stringifyJson({ variants, discovered_at: new Date().toISOString() });
  return JSON.parse(text.replaceAll('\\u0000', '\\ufffd')) as EnvironmentDiscoveryView;
}

async function discoverVariant(
  backend: Backend,
  name: string,
  isDefault: boolean,
  signal: AbortSignal,
): Promise<EnvironmentDiscoveryView['variants'][number]> {
  const [splits, tools] = await Promise.all([backend.splits(name, signal), backend.tools(name, signal)]);
  if (splits.length > MAX_SPLITS) throw tooMany(`${splits.length} splits`, MAX_SPLITS);
  const counted = splits.map(async (split) => ({
    ...split,
    num_tasks: await backend.numTasks(name, split.name, signal).catch(() => null),
  }));
  return { name, is_default: isDefault, splits: await Promise.all(counted), tools };
}

const tooMany = (what: string, limit: number) =>
  new PalestraError('backend_invalid', { detail: `The environment server offers ${what}; this service accepts at most ${limit}.` });

/** Discovery of a version's server, repeated when it is older than a minute or after a restart of the service. */
@Injectable()
export class DiscoveryService {
  readonly #fresh = new Map<string, { view: EnvironmentDiscoveryView; readAt: number }>();
  readonly #reading = new SingleFlight<EnvironmentDiscoveryView>();

  constructor(@Inject(EnvironmentRepository) private readonly repository: EnvironmentRepository) {}

  /**
   * The last known discovery if the server is unreachable; throws its error if there is none. `discovered_at` is the time of the discovery.
   */
  async of(version: VersionRecord, backend: Backend): Promise<EnvironmentDiscoveryView> {
    const known = this.#fresh.get(version.id);
    if (known && Date.now() - known.readAt < MAX_AGE_MS) return known.view;
    try {
      return await this.refresh(version.id, backend);
    } catch (error) {
      const stored = known?.view ?? storedDiscovery(version);
      if (stored === null) throw error;
      return stored;
    }
  }

  async refresh(versionId: string, backend: Backend): Promise<EnvironmentDiscoveryView> {
    return this.#reading.do(versionId, async () => {
      const view = await withDeadline((signal) => discover(backend, signal));
      this.#fresh.set(versionId, { view, readAt: Date.now() });
      await this.repository.saveDiscovery(versionId, view);
      return view;
    });
  }

  forget(versionId: string): void {
    this.#fresh.delete(versionId);
  }
}

/** Runs with a deadline, which clients see as `backend_timeout`. */
export async function withDeadline<T>(run: (signal: AbortSignal) => Promise<T>, deadlineMs = DEADLINE_MS): Promise<T> {
  const signal = AbortSignal.timeout(deadlineMs);
  try {
    return await run(signal);
  } catch (error) {
    if (signal.aborted && !(error instanceof PalestraError)) throw new PalestraError('backend_timeout', { cause: error });
    throw error;
  }
}

import { HostingError, type LogLine, type Provider } from '@palestra/hosting';
import { systemClock } from '@palestra/kit';
import type { InstanceLogSource, InstanceLogStore } from '../logs/instance-log-store.ts';
import type { StoredInstance } from './instance.sql.ts';

const BATCH_LINES = 500;
const BATCH_MS = 200;
/** Lines of one instance that wait to be stored. More are counted and left out. */
const MOST_WAITING = 5_000;
/** Lines that tell why an instance ended. */
const TAIL_LINES = 12;
const TAIL_CHARS = 300;
const RETRY_MS = 1_000;
/** How long the end of the log of an ended instance may take. */
const LAST_LINES_MS = 2_000;

type InstanceLines = Pick<InstanceLogStore, 'append' | 'clean' | 'lastAt'>;

interface Followed {
  stop: AbortController;
  waiting: LogLine[];
  dropped: number;
  tail: string[];
  /** Settles when the log has ended. */
  following: Promise<void>;
  storing: Promise<void>;
}

/** Follows the logs of running instances and stores their lines. */
export class InstanceLogs {
  readonly #store: InstanceLines;
  readonly #onError: (error: unknown, id: string) => void;
  readonly #followed = new Map<string, Followed>();

  constructor(store: InstanceLines, onError: (error: unknown, id: string) => void) {
    this.#store = store;
    this.#onError = onError;
  }

  /** Follows exactly these instances. Those that are left out were forgotten elsewhere. */
  follow(instances: readonly { row: StoredInstance; provider: Provider }[]): void {
    const wanted = new Set(instances.map(({ row }) => row.id));
    for (const [id, { stop }] of this.#followed) {
      if (wanted.has(id)) continue;
      stop.abort();
      this.#followed.delete(id);
    }
    for (const { row, provider } of instances) if (!this.#followed.has(row.id)) this.#start(row, provider);
  }

  /** The last lines of an instance that has ended, as its log shows them. Waits a moment for them, so that its log is complete. */
  async tail(row: StoredInstance, provider: Provider): Promise<string[]> {
    const last = await this.#lastLines(row.id, provider);
    // Without the secrets they cannot be masked, so no line is shown.
    const lines = await this.#store.clean(sourceOf(row), last).catch(() => []);
    return lines.map((line) => (line.length > TAIL_CHARS ? `${line.slice(0, TAIL_CHARS)}…` : line));
  }

  async #lastLines(id: string, provider: Provider): Promise<string[]> {
    const followed = this.#followed.get(id);
    const late = AbortSignal.timeout(LAST_LINES_MS);
    if (followed !== undefined) {
      await Promise.race([followed.following, systemClock.sleep(LAST_LINES_MS)]);
      await followed.storing.catch(() => {});
      if (followed.tail.length > 0) return followed.tail;
    }
    const lines: string[] = [];
    try {
      for await (const { text } of provider.logs(id, null, late)) remember(lines, text);
    } catch {
      // An engine may have no log of what has ended.
    }
    return lines;
  }

  async stop(): Promise<void> {
    const all = [...this.#followed.values()];
    this.#followed.clear();
    for (const { stop } of all) stop.abort();
    await Promise.allSettled(all.flatMap(({ following, storing }) => [following, storing]));
  }

  #start(row: StoredInstance, provider: Provider): void {
    const followed: Followed = {
      stop: new AbortController(),
      waiting: [],
      dropped: 0,
      tail: [],
      following: Promise.resolve(),
      storing: Promise.resolve(),
    };
    followed.following = this.#follow(row, provider, followed).catch((error: unknown) => this.#onError(error, row.id));
    this.#followed.set(row.id, followed);
  }

  /** Ends with the log: the engine ends it when the instance has ended. */
  async #follow(row: StoredInstance, provider: Provider, followed: Followed): Promise<void> {
    const { signal } = followed.stop;
    let since = await this.#store.lastAt(row.id);
    for (;;) {
      try {
        for await (const line of provider.logs(row.id, since, signal)) {
          since = line.at;
          remember(followed.tail, line.text);
          this.#add(row, followed, line);
        }
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof HostingError) || error.code !== 'engine_unavailable') throw error;
      }
      await systemClock.sleep(RETRY_MS, signal).catch(() => {});
    }
  }

  #add(row: StoredInstance, followed: Followed, line: LogLine): void {
    if (followed.waiting.length >= MOST_WAITING) {
      followed.dropped += 1;
      return;
    }
    followed.waiting.push(line);
    if (followed.waiting.length === 1) followed.storing = followed.storing.then(() => this.#write(row, followed));
  }

  async #write(row: StoredInstance, followed: Followed): Promise<void> {
    await systemClock.sleep(BATCH_MS);
    while (followed.waiting.length > 0) {
      const lines = followed.waiting.slice(0, BATCH_LINES);
      try {
        await this.#store.append(sourceOf(row), lines);
        followed.waiting.splice(0, lines.length);
      } catch (error) {
        if (followed.stop.signal.aborted) return void (followed.waiting.length = 0);
        this.#onError(error, row.id);
        await systemClock.sleep(RETRY_MS);
      }
      if (followed.dropped > 0 && followed.waiting.length === 0) {
        const text = `${followed.dropped} lines were left out: the instance writes faster than they can be stored.`;
        followed.dropped = 0;
        followed.waiting.push({ at: new Date(), stream: 'stderr', text });
      }
    }
  }
}

const sourceOf = (row: StoredInstance): InstanceLogSource => ({
  id: row.id,
  environmentId: row.environment_id,
  versionId: row.version_id,
  orgId: row.org_id,
});

function remember(tail: string[], text: string): void {
  tail.push(text);
  if (tail.length > TAIL_LINES) tail.shift();
}

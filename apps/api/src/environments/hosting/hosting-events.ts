import { Inject, Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { EventEmitter } from 'node:events';
import type pg from 'pg';
import { Database } from '../../platform/database/database.ts';
import { DatabaseListener } from '../../platform/database/listener.ts';

/** The payload of both is the id of an environment. An empty one is only for the process that runs instances. */
export const CHANGES = 'palestra_hosting';
const LOGS = 'palestra_hosting_logs';
/** The payload is the id of a version, or empty for several. */
const INSTANCES = 'palestra_hosting_instances';

/** Tells every process, after the commit, that deploys, channels, settings or instances of an environment changed. */
export async function notifyHosting(client: Pick<pg.Pool, 'query'>, environmentId: string): Promise<void> {
  await client.query(`SELECT pg_notify('${CHANGES}', $1)`, [environmentId]);
}

/** Wakes the process that runs instances. */
export async function wakeReconciler(client: Pick<pg.Pool, 'query'>): Promise<void> {
  await client.query({ name: 'hosting_wake', text: `SELECT pg_notify('${CHANGES}', '')` });
}

/** Tells every process that instances of these versions became ready, or must not be used any more. */
export async function notifyInstances(client: Pick<pg.Pool, 'query'>, versionIds: readonly string[]): Promise<void> {
  await client.query(`SELECT pg_notify('${INSTANCES}', id) FROM unnest($1::text[]) AS n(id)`, [versionIds]);
}

/** Tells every process about new log lines of these environments. */
export async function notifyLogs(client: Pick<pg.Pool, 'query'>, environmentIds: readonly string[]): Promise<void> {
  await client.query(`SELECT pg_notify('${LOGS}', id) FROM unnest($1::text[]) AS n(id)`, [environmentIds]);
}

/** Listens to the notifications of all processes. One may be lost with the connection, so listeners also poll. */
@Injectable()
export class HostingEvents implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #changes = new EventEmitter().setMaxListeners(0);
  readonly #logs = new EventEmitter().setMaxListeners(0);
  readonly #instances = new EventEmitter().setMaxListeners(0);
  readonly #listener: DatabaseListener;

  constructor(@Inject(Database) database: Database) {
    const emit = (payload: string, channel: string) => this.#emit(channel, payload);
    this.#listener = new DatabaseListener(database.connectionString, [CHANGES, LOGS, INSTANCES], emit);
  }

  /** Calls `listener` with the id of every changed environment. Returns a function that unsubscribes. */
  onChange(listener: (environmentId: string) => void): () => void {
    this.#changes.on('change', listener);
    return () => this.#changes.off('change', listener);
  }

  /** Calls `listener` when there are new log lines of the environment. Returns a function that unsubscribes. */
  onLog(environmentId: string, listener: () => void): () => void {
    this.#logs.on(environmentId, listener);
    return () => this.#logs.off(environmentId, listener);
  }

  /** Calls `listener` with the version of which an instance became ready or ended; null: several. Returns a function that unsubscribes. */
  onInstance(listener: (versionId: string | null) => void): () => void {
    this.#instances.on('change', listener);
    return () => this.#instances.off('change', listener);
  }

  /** Resolves when an instance of the version became ready or ended, or after `atMostMs`. Rejects with the reason of the signal. */
  async nextInstance(versionId: string, atMostMs: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const end = (settle: () => void) => {
        clearTimeout(timer);
        signal.removeEventListener('abort', onAbort);
        unsubscribe();
        settle();
      };
      const onAbort = () => end(() => reject(signal.reason as Error));
      const timer = setTimeout(() => end(resolve), atMostMs);
      const unsubscribe = this.onInstance((changed) => {
        if (changed === null || changed === versionId) end(resolve);
      });
      signal.addEventListener('abort', onAbort, { once: true });
    });
  }

  onApplicationBootstrap(): void {
    this.#listener.start();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.#listener.stop();
  }

  #emit(channel: string, payload: string): void {
    if (channel === LOGS) this.#logs.emit(payload);
    else if (channel === INSTANCES) this.#instances.emit('change', payload === '' ? null : payload);
    else if (payload !== '') this.#changes.emit('change', payload);
  }
}

import { SingleFlight } from '@palestra/kit';
import { forwardedUpstream } from '@palestra/openenv/client';
import { type EnvironmentDiscoveryView, PalestraError, type Split, type TaskSpec, type ToolsAnswer } from '@palestra/protocol';
import type { Backend, BackendCreate, BackendSession, BackendSessionRef, NativeServer } from '@palestra/session';
import type { Logger } from 'pino';
import type pg from 'pg';
import type { ServerKind } from '@palestra/hosting';
import { MOST_UNREADY } from './decide.ts';
import { HostedSession } from './hosted-session.ts';
import type { InstanceConnection, InstanceConnections } from './instance-connections.ts';
import type { HostingEvents } from '../hosting-events.ts';
import { wakeReconciler } from '../hosting-events.ts';
import type { InstanceStarter } from './instance-starter.ts';
import { selectReady, selectStartFacts, type StartFacts } from './instance-status.sql.ts';
import { Placement } from './placement.sql.ts';

/** A version that runs here. */
export interface HostedVersion {
  id: string;
  protocol: ServerKind;
  /** May change while it is in use. */
  settings: {
    concurrency: number;
    minWarm: number;
    /** Other organisations do not see the log of a failed instance. */
    isPrivate: boolean;
    /** Read from its server when it was deployed; null: never. */
    discovery: EnvironmentDiscoveryView | null;
  };
}

export interface HostedServices {
  pool: pg.Pool;
  connections: InstanceConnections;
  events: HostingEvents;
  starter: InstanceStarter;
  logger: Logger;
  /** Most instances of an organisation. */
  ceiling: number;
  /** The backend of one instance, which answers at `endpoint`. */
  open(endpoint: string): Backend;
}

/** The reference of an episode: its instance, and what the instance's backend needs. */
interface Ref {
  instance: string;
  ref: BackendSessionRef;
}

/** How often those who wait for an instance look, beside the notifications. */
const LOOK_MS = 500;
/** How long a request for tasks waits for an instance that starts. Its client repeats it. */
const READ_WAIT_MS = 25_000;
/** How often an episode is opened elsewhere because its instance ended meanwhile. */
const ATTEMPTS = 3;
const VERDICT_MS = 3_000;
/** A process that runs instances says so every few seconds. */
const RECONCILER_SILENT_S = 60;
/** After a start of the service it has not said so yet. */
const FIRST_SAID_MS = 10_000;
const ENGINE_SILENT_S = 30;

/**
 * An environment version whose instances run here. A session gets a place on a ready instance, or waits for one, which the reconciler then
 * starts. What a version offers is known from its deploy, so that reading it wakes no instance.
 */
export class HostedBackend implements Backend {
  declare readonly native?: NativeServer;
  readonly #version: HostedVersion;
  readonly #services: HostedServices;
  readonly #placement: Placement;
  readonly #reading = new SingleFlight<InstanceConnection | null>();
  readonly #judging = new SingleFlight<StartFacts | null>();
  /** The instance that answers requests without a session. */
  #reader: InstanceConnection | null = null;

  constructor(version: HostedVersion, services: HostedServices) {
    this.#version = version;
    this.#services = services;
    this.#placement = new Placement(services.pool, version.id, () => version.settings);
    if (version.protocol === 'openenv') this.native = forwardedUpstream(async (signal) => (await this.#awake(signal)).backend);
  }

  environments(signal: AbortSignal): Promise<string[]> {
    return this.#read(
      (backend) => backend.environments(signal),
      ({ variants }) => variants.map(({ name }) => name),
      signal,
    );
  }
  tools(env: string | null, signal: AbortSignal): Promise<ToolsAnswer> {
    return this.#read(
      (backend) => backend.tools(env, signal),
      (discovery) => variantOf(discovery, env).tools,
      signal,
    );
  }
  splits(env: string | null, signal: AbortSignal): Promise<Split[]> {
    const stored = (discovery: EnvironmentDiscoveryView) => variantOf(discovery, env).splits.map(({ name, type }) => ({ name, type }));
    return this.#read((backend) => backend.splits(env, signal), stored, signal);
  }
  numTasks(env: string | null, split: string, signal: AbortSignal): Promise<number> {
    const stored = (discovery: EnvironmentDiscoveryView) => {
      const found = variantOf(discovery, env).splits.find(({ name }) => name === split);
      if (found === undefined) throw new PalestraError('invalid_split');
      return found.num_tasks;
    };
    return this.#read((backend) => backend.numTasks(env, split, signal), stored, signal);
  }
  tasks(env: string | null, split: string, signal: AbortSignal): Promise<TaskSpec[]> {
    return this.#read(
      (backend) => backend.tasks(env, split, signal),
      () => null,
      signal,
    );
  }
  task(env: string | null, split: string, index: number, signal: AbortSignal): Promise<TaskSpec> {
    return this.#read(
      (backend) => backend.task(env, split, index, signal),
      () => null,
      signal,
    );
  }
  taskRange(env: string | null, split: string, start: number | null, stop: number | null, signal: AbortSignal): Promise<TaskSpec[]> {
    return this.#read(
      (backend) => backend.taskRange(env, split, start, stop, signal),
      () => null,
      signal,
    );
  }

  /** Waits for an instance with room. Throws `instance_failed` when none starts, `capacity_exhausted` when the organisation has its most. */
  async create(request: BackendCreate, signal: AbortSignal): Promise<BackendSessionRef> {
    const { sid } = request;
    const since = Date.now();
    let placedOn: string | null = null;
    try {
      for (let attempt = 1; ;) {
        const place = await this.#placement.take(sid);
        if (place === 'gone') throw new PalestraError('session_lost', { detail: 'Session lost: it ended while it was being opened.' });
        if (place === 'full') {
          placedOn = null;
          await this.#waitForRoom(since, signal);
          continue;
        }
        placedOn = place.instanceId;
        const connection = this.#use(place.instanceId, place.endpoint);
        try {
          const ref = await connection.backend.create(request, signal);
          return { instance: place.instanceId, ref } satisfies Ref;
        } catch (error) {
          // The constructor ran on an instance that is gone: no episode is left of it.
          if (signal.aborted || attempt === ATTEMPTS || !(await mayBeGone(error, connection))) throw error;
          attempt += 1;
        }
      }
    } catch (error) {
      await this.#placement.release(sid, placedOn).catch((late: unknown) => {
        this.#services.logger.warn({ err: late, sid }, 'a place was not released; it is free when the session ends');
      });
      throw error;
    }
  }

  session(stored: BackendSessionRef): BackendSession {
    const { instance, ref } = stored as unknown as Ref;
    const { id, protocol } = this.#version;
    const { connections, open } = this.#services;
    const found = { known: () => connections.known(instance), find: () => connections.find(instance, id, open) };
    const has = { ready: protocol !== 'remote', native: protocol === 'openenv' };
    return new HostedSession(found, ({ backend }) => backend.session(ref), has);
  }

  /** Connections to instances belong to the process, not to this object. */
  async close(): Promise<void> {}

  #use(instanceId: string, endpoint: string): InstanceConnection {
    return this.#services.connections.use(instanceId, this.#version.id, () => this.#services.open(endpoint));
  }

  /** Asks a ready instance, otherwise what was stored; wakes an instance only for what is not stored (`null`). */
  async #read<T>(ask: (backend: Backend) => Promise<T>, stored: (discovery: EnvironmentDiscoveryView) => T | null, signal: AbortSignal) {
    const { discovery } = this.#version.settings;
    for (let attempt = 1; ; attempt += 1) {
      let connection = await this.#ready();
      if (connection === null) {
        const known = discovery === null ? null : stored(discovery);
        if (known !== null) return known;
        connection = await this.#awake(signal);
      }
      try {
        return await ask(connection.backend);
      } catch (error) {
        if (signal.aborted || attempt === ATTEMPTS || !(await mayBeGone(error, connection))) throw error;
      }
    }
  }

  /** A ready instance; null if there is none. */
  async #ready(): Promise<InstanceConnection | null> {
    if (this.#reader !== null && !this.#reader.gone.aborted) return this.#reader;
    this.#reader = await this.#reading.do('', async () => {
      const found = await selectReady(this.#services.pool, this.#version.id);
      return found === null ? null : this.#use(found.id, found.endpoint);
    });
    return this.#reader;
  }

  /** A ready instance, which is started if there is none. Throws `environment_starting` when that takes long. */
  async #awake(signal: AbortSignal): Promise<InstanceConnection> {
    for (const since = Date.now(); ;) {
      const ready = await this.#ready();
      if (ready !== null) return ready;
      if (Date.now() - since >= READ_WAIT_MS)
        throw new PalestraError('environment_starting', { retryAfterSeconds: 2, backendStarting: true });
      const { starter, events } = this.#services;
      await this.#assertStartable(since);
      await starter.wake(this.#version.id);
      await events.nextInstance(this.#version.id, LOOK_MS, signal);
    }
  }

  async #waitForRoom(since: number, signal: AbortSignal): Promise<void> {
    const { events, pool } = this.#services;
    const next = events.nextInstance(this.#version.id, LOOK_MS, signal);
    next.catch(() => {});
    await wakeReconciler(pool).catch(() => {});
    await this.#assertStartable(since);
    await next;
  }

  /** Throws when no instance will start in the foreseeable time. `since`: when the request began to wait. Callers at the same time share the facts. */
  async #assertStartable(since: number): Promise<void> {
    const facts = await this.#judging.do('', () => selectStartFacts(this.#services.pool, this.#version.id));
    if (facts === null) throw new PalestraError('session_lost', { detail: 'Session lost: the environment that it ran on was deleted.' });
    if (isUnattended(facts) && Date.now() - since < FIRST_SAID_MS) return;
    const why = whyNotStarting(facts, this.#services.ceiling, this.#version.settings.isPrivate);
    if (why !== null) throw why;
  }
}

/** Whether no process runs instances. */
const isUnattended = ({ reconciled_s: seconds }: StartFacts): boolean => seconds === null || seconds > RECONCILER_SILENT_S;

/** Null while an instance starts, or will. `isPrivate`: the reason may show the log. */
export function whyNotStarting(facts: StartFacts, ceiling: number, isPrivate: boolean): PalestraError | null {
  const failed = (detail: string) => new PalestraError('instance_failed', { detail, retryAfterSeconds: 10 });
  if (isUnattended(facts))
    return failed('No process of this service runs instances now. Its operator finds the reason in the log of the worker.');
  if (facts.engine !== null && facts.engine.silent_s > ENGINE_SILENT_S)
    return failed(`The engine that runs the instances of this environment does not answer. ${facts.engine.detail}`);
  if (facts.serving > 0) return null;
  if (facts.unready >= MOST_UNREADY) {
    const why = isPrivate && facts.detail !== null ? ` ${facts.detail}` : '';
    return failed(
      `The last ${facts.unready} instances of this environment ended before they answered.${why} palestra env logs shows more.`,
    );
  }
  if (facts.of_org < ceiling) return null;
  return new PalestraError('capacity_exhausted', {
    detail: `429: maximum capacity: the organisation of this environment has ${ceiling} instances, the maximum of this server (PALESTRA_MAX_INSTANCES_PER_ORG).`,
    retryAfterSeconds: 5,
  });
}

/** Whether a failed request may be sent to another instance, because its own is gone. */
async function mayBeGone(error: unknown, connection: InstanceConnection): Promise<boolean> {
  if (connection.gone.aborted) return true;
  const isDoubtful = error instanceof PalestraError && (error.code === 'backend_unreachable' || error.code === 'session_lost');
  return isDoubtful && connection.endsWithin(VERDICT_MS);
}

/** Throws `unknown_variant`. */
function variantOf({ variants }: EnvironmentDiscoveryView, env: string | null): EnvironmentDiscoveryView['variants'][number] {
  const found = variants.find(({ name, is_default: isDefault }) => (env === null ? isDefault : name === env.toLowerCase()));
  if (found !== undefined) return found;
  throw new PalestraError('unknown_variant', { detail: `unknown environment '${env ?? ''}'` });
}

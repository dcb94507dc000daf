import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { SingleFlight } from '@palestra/kit';
import { PalestraError } from '@palestra/protocol';
import type { Backend } from '@palestra/session';
import { Database } from '../../../platform/database/database.ts';
import { HostingEvents } from '../hosting-events.ts';
import { wakeReconciler } from '../hosting-events.ts';
import { type InstanceStatus, selectStatuses } from './instance-status.sql.ts';

/** How often the instances in use are read again, in case a notification was lost. */
const REFRESH_MS = 2_000;
const POLL_MS = 100;
/** A closed connection stays known, because many sessions may ask for it. */
const MOST_GONE = 10_000;

const isGone = (status: InstanceStatus | undefined): boolean =>
  status === undefined || status.state === 'failed' || status.state === 'stopped';

/** The error of sessions on an instance that is gone. Only the first line: the others are of its log, which belongs to its owner. */
function lostWith(status: InstanceStatus | undefined): PalestraError {
  const why = status?.detail?.split('\n')[0];
  return new PalestraError('session_lost', {
    detail: `Session lost: the instance of the environment that served it has ended.${why === undefined ? '' : ` ${why}`}`,
  });
}

/** An instance that this process uses. */
export class InstanceConnection {
  readonly #gone = new AbortController();

  constructor(
    readonly id: string,
    readonly versionId: string,
    readonly backend: Backend,
    readonly owner: InstanceConnections,
  ) {}

  /** Aborts with `session_lost` when the instance must not be used any more. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Its port may soon belong to another server, so nothing is sent to it from now on. */
  end(why: PalestraError): void {
    this.#gone.abort(why);
    this.backend.close().catch(() => {});
  }

  /** The instance did not answer: whether it is gone, which the reconciler may find out only now. */
  async endsWithin(ms: number): Promise<boolean> {
    return this.gone.aborted || this.owner.endsWithin(this, ms);
  }
}

/** The instances that this process uses. An instance is used only while the database has it as running. */
@Injectable()
export class InstanceConnections implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly #open = new Map<string, InstanceConnection>();
  /** Why instances that are no longer used ended. */
  readonly #ended = new Map<string, PalestraError>();
  readonly #finding = new SingleFlight<InstanceConnection>();
  readonly #checking = new SingleFlight<boolean>();
  #refreshing: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;
  #unsubscribe = () => {};

  constructor(
    private readonly database: Database,
    private readonly events: HostingEvents,
  ) {}

  onApplicationBootstrap(): void {
    this.#unsubscribe = this.events.onInstance((versionId) => void this.#refresh(versionId));
    this.#timer = setInterval(() => void this.#refresh(null), REFRESH_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    clearInterval(this.#timer);
    this.#unsubscribe();
    await this.#refreshing;
    const all = [...this.#open.values()];
    this.#open.clear();
    await Promise.allSettled(all.map(({ backend }) => backend.close()));
  }

  /** The connection to an instance that the database has just shown as running. */
  use(id: string, versionId: string, create: () => Backend): InstanceConnection {
    const known = this.#open.get(id);
    if (known !== undefined) return known;
    const connection = new InstanceConnection(id, versionId, create(), this);
    this.#open.set(id, connection);
    return connection;
  }

  /** Null when this process does not use the instance yet; throws `session_lost` when the instance is known to be gone. */
  known(id: string): InstanceConnection | null {
    const ended = this.#ended.get(id);
    if (ended !== undefined) throw ended;
    return this.#open.get(id) ?? null;
  }

  /** The connection to an instance of a stored session. Throws `session_lost` when the instance is gone. */
  find(id: string, versionId: string, create: (endpoint: string) => Backend): Promise<InstanceConnection> {
    return this.#finding.do(id, async () => {
      const known = this.known(id);
      if (known !== null) return known;
      const [status] = await selectStatuses(this.database.pool, [id]);
      if (isGone(status) || status?.endpoint == null) throw this.#remember(id, lostWith(status));
      return this.use(id, versionId, () => create(status.endpoint!));
    });
  }

  /** See {@link InstanceConnection.endsWithin}. Sessions of an instance share one check. */
  endsWithin(connection: InstanceConnection, ms: number): Promise<boolean> {
    return this.#checking.do(`${connection.id} ${ms}`, async () => {
      await wakeReconciler(this.database.pool).catch(() => {});
      for (const until = Date.now() + ms; ;) {
        await this.#check([connection]).catch(() => {});
        if (connection.gone.aborted || Date.now() >= until) return connection.gone.aborted;
        await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      }
    });
  }

  /** Reads the instances of a version again; null: all. */
  #refresh(versionId: string | null): Promise<void> {
    const all = [...this.#open.values()].filter((connection) => versionId === null || connection.versionId === versionId);
    // The next refresh makes up for one that failed.
    if (all.length > 0) this.#refreshing = this.#refreshing.then(() => this.#check(all)).catch(() => {});
    return this.#refreshing;
  }

  async #check(connections: readonly InstanceConnection[]): Promise<void> {
    const stored = new Map(
      (
        await selectStatuses(
          this.database.pool,
          connections.map(({ id }) => id),
        )
      ).map((status) => [status.id, status]),
    );
    for (const connection of connections) {
      const status = stored.get(connection.id);
      if (!isGone(status) || connection.gone.aborted) continue;
      this.#open.delete(connection.id);
      connection.end(this.#remember(connection.id, lostWith(status)));
    }
  }

  #remember(id: string, why: PalestraError): PalestraError {
    this.#ended.set(id, why);
    if (this.#ended.size > MOST_GONE) this.#ended.delete(this.#ended.keys().next().value!);
    return why;
  }
}

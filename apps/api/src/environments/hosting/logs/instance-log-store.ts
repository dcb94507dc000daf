import { Inject, Injectable } from '@nestjs/common';
import type { LogLine } from '@palestra/hosting';
import { LRUCache } from 'lru-cache';
import { Database } from '../../../platform/database/database.ts';
import { EnvironmentSecrets, maskOf } from '../secrets/environment-secrets.ts';
import { type LogSource, type NewLogLine, selectLastAt } from './hosting-log.sql.ts';
import { HostingLogs } from './hosting-logs.service.ts';
import { LogSink } from './log-sink.ts';

/** Sinks remember the severity of the last line. Further ones begin again. */
const MAX_SINKS = 10_000;

/** An instance whose lines are stored. */
export interface InstanceLogSource {
  id: string;
  environmentId: string;
  versionId: string;
  orgId: string;
}

interface Kept {
  sink: LogSink;
  lines: NewLogLine[];
}

/** Stores the lines of instances, without the values of their environment's secrets. */
@Injectable()
export class InstanceLogStore {
  readonly #kept = new LRUCache<string, Kept>({ max: MAX_SINKS });

  constructor(
    @Inject(Database) private readonly database: Database,
    @Inject(HostingLogs) private readonly logs: HostingLogs,
    @Inject(EnvironmentSecrets) private readonly secrets: EnvironmentSecrets,
  ) {}

  /** Resolves when the lines are stored. Rejects when the database does not answer; the caller keeps them. One call at a time for an instance. */
  async append(source: InstanceLogSource, lines: readonly LogLine[]): Promise<void> {
    const { sink, lines: kept } = await this.#keptOf(source);
    kept.length = 0;
    for (const line of lines) sink.write(line);
    await this.logs.store([...kept]);
  }

  /** Lines as the log shows them. Rejects when the secrets cannot be read. */
  async clean(source: InstanceLogSource, lines: readonly string[]): Promise<string[]> {
    const { sink } = await this.#keptOf(source);
    return lines.map((line) => sink.clean(line));
  }

  /** Time of the last stored line of the instance; null if there is none. */
  lastAt(id: string): Promise<Date | null> {
    return selectLastAt(this.database.pool, id);
  }

  async #keptOf(source: InstanceLogSource): Promise<Kept> {
    return this.#kept.get(source.id) ?? this.#keep(source);
  }

  async #keep({ id, environmentId, versionId, orgId }: InstanceLogSource): Promise<Kept> {
    const mask = maskOf(await this.secrets.openAll(environmentId));
    const lines: NewLogLine[] = [];
    const source: LogSource = { sourceId: id, environmentId, orgId, versionId };
    const store = { append: (line: NewLogLine) => void lines.push(line), admit: this.logs.admit.bind(this.logs) };
    const kept = { sink: new LogSink(store, source, mask), lines };
    this.#kept.set(id, kept);
    return kept;
  }
}

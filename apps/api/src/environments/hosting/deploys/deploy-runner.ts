import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { Inject, Injectable, type OnApplicationBootstrap, type OnModuleInit } from '@nestjs/common';
import { BlobError } from '@palestra/blobs';
import { HostingError } from '@palestra/hosting';
import { PalestraError } from '@palestra/protocol';
import type { Logger } from 'pino';
import { JOB_SCHEMA } from '../../../jobs/job-schema.ts';
import { JobQueue } from '../../../jobs/job-queue.service.ts';
import { type Config, CONFIG } from '../../../platform/config.ts';
import { Database } from '../../../platform/database/database.ts';
import { LOGGER } from '../../../platform/tokens.ts';
import { notifyHosting, notifyLogs } from '../hosting-events.ts';
import { countLines } from '../logs/hosting-log.sql.ts';
import { HostingLogs } from '../logs/hosting-logs.service.ts';
import { EnvironmentSecrets, maskOf } from '../secrets/environment-secrets.ts';
import { DeployLog } from './deploy-log.ts';
import { DeploySources } from './deploy-sources.ts';
import { type DeployOutcome, DeployWork } from './deploy-work.ts';
import {
  beginDeploy,
  type DeployEnd,
  type DeployError,
  type DeployRow,
  endDeploy,
  isCancelRequested,
  selectDeploy,
  selectLostDeploys,
  selectSuccessor,
} from './deploy.sql.ts';
import { VersionRows } from './version-rows.ts';

const MINUTE_MS = 60_000;
/** A build, a clone and the start of an instance have shorter deadlines of their own. */
const DEADLINE_MS = 120 * MINUTE_MS;
/** How often processes may die or fail with a deploy until it fails. */
const MAX_ATTEMPTS = 4;
const CANCEL_POLL_MS = 500;

/**
 * Runs deploys as jobs. Whatever a process that died had done is done again, or found: the artifact by the digest of its source, the version by
 * its deploy. Deploys of one environment run in their order; one that waits is cancelled when a later one promotes the same channel.
 */
@Injectable()
export class DeployRunner implements OnModuleInit, OnApplicationBootstrap {
  // Seven parts: this class owns the end of a deploy, whatever happened.
  constructor(
    private readonly jobs: JobQueue,
    private readonly database: Database,
    private readonly logs: HostingLogs,
    private readonly secrets: EnvironmentSecrets,
    private readonly sources: DeploySources,
    private readonly versions: VersionRows,
    private readonly work: DeployWork,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    const options = { deadlineMs: DEADLINE_MS, lane: 'long' } as const;
    this.jobs.handle('deploy', options, ({ id }: { id: string }, signal) => this.run(id, signal));
    this.jobs.handle('end-lost-deploys', { everyMs: MINUTE_MS, deadlineMs: MINUTE_MS }, () => this.endLost());
  }

  /** Deletes what builds of processes that died left on this machine. */
  async onApplicationBootstrap(): Promise<void> {
    if (this.config.jobs !== 'here') return;
    for (const id of await readdir(this.#root).catch(() => [])) {
      const deploy = await selectDeploy(this.database.pool, id).catch(() => null);
      if (deploy?.ended_at !== null) await rm(this.#folder(id), { recursive: true, force: true }).catch(() => {});
    }
  }

  /** Runs one deploy to its end. Rejects when `stop` aborts or the engine does not answer: the job is repeated. */
  async run(id: string, stop: AbortSignal): Promise<void> {
    const deploy = await beginDeploy(this.database.pool, id);
    if (deploy === null) return;
    const secrets = await this.secrets.openAll(deploy.environment_id);
    const log = await this.#openLog(deploy, secrets);
    const cancelled = new AbortController();
    const watch = setInterval(() => void this.#watch(id, cancelled), CANCEL_POLL_MS);
    try {
      const signal = AbortSignal.any([stop, cancelled.signal]);
      const end = (await this.#endBefore(deploy)) ?? (await this.work.run(deploy, { log, secrets, folder: this.#folder(id), signal }));
      await this.#end(deploy, log, 'state' in end ? end : readyWith(end));
    } catch (error) {
      if (cancelled.signal.aborted) await this.#end(deploy, log, cancelledEnd('The deploy was cancelled.'));
      else if (stop.aborted || (isPassing(error) && deploy.attempts < MAX_ATTEMPTS)) {
        log.note(stop.aborted ? 'Interrupted. The deploy begins again.' : `${textOf(error)} The deploy begins again.`, 'warning');
        await log.flush();
        throw error;
      } else {
        if (!isExplained(error)) this.logger.error({ err: error, deploy: id }, 'a deploy failed');
        await this.#end(deploy, log, { state: 'failed', error: errorOf(error, log) });
      }
    } finally {
      clearInterval(watch);
      await rm(this.#folder(id), { recursive: true, force: true }).catch(() => {});
    }
  }

  /** Ends deploys whose job is gone. */
  async endLost(): Promise<void> {
    for (const id of await selectLostDeploys(this.database.pool, JOB_SCHEMA)) {
      const deploy = await selectDeploy(this.database.pool, id);
      if (deploy === null) continue;
      const log = await this.#openLog(deploy, {});
      const detail =
        'The process that ran the deploy ended too often. Deploy again; if that fails too, ask the operator for the log of the service.';
      await this.#end(deploy, log, { state: 'failed', error: { code: 'internal_error', detail, line: null } });
    }
  }

  /** What ends a deploy before its work: a request to cancel it, a later deploy, or too many attempts. */
  async #endBefore(deploy: DeployRow): Promise<DeployEnd | null> {
    if (deploy.cancel_requested_at !== null) return cancelledEnd('The deploy was cancelled.');
    const successor = deploy.channel === null ? null : await selectSuccessor(this.database.pool, deploy);
    if (successor !== null) return cancelledEnd(`Deploy ${successor} is newer and promotes the same channel, so this one was left out.`);
    if (deploy.attempts <= MAX_ATTEMPTS) return null;
    const detail = `The deploy was interrupted ${MAX_ATTEMPTS} times. Its build may need more memory than this server has.`;
    return { state: 'failed', error: { code: 'build_failed', detail, line: null } };
  }

  /** The log is complete before the state: a reader that follows it ends with the state. */
  async #end(deploy: DeployRow, log: DeployLog, { error: reason, ...outcome }: DeployEnd): Promise<void> {
    const { pool } = this.database;
    // What a build wrote may be part of the detail.
    const end: DeployEnd = reason === undefined ? outcome : { ...outcome, error: { ...reason, detail: log.clean(reason.detail) } };
    const line = end.error === undefined ? null : log.noteEnd(end.error.detail, end.state === 'failed' ? 'error' : 'warning');
    await log.flush();
    if (end.state !== 'ready') await this.versions.discard(deploy.id);
    // What an instance wrote before it failed is part of the detail.
    const error = end.error?.line === null && end.error.detail.includes('\n') ? { ...end.error, line } : end.error;
    await endDeploy(pool, deploy.id, { ...end, ...(error && { error }) });
    await notifyHosting(pool, deploy.environment_id);
    await notifyLogs(pool, [deploy.environment_id]);
    if (deploy.source_key !== null) await this.sources.delete(deploy.source_key).catch(() => {});
  }

  async #openLog(deploy: DeployRow, secrets: Record<string, string>): Promise<DeployLog> {
    const { id: sourceId, environment_id: environmentId, org_id: orgId } = deploy;
    const sink = this.logs.sink({ sourceId, environmentId, orgId, versionId: null }, maskOf(secrets));
    return new DeployLog(sink, this.logs, await countLines(this.database.pool, sourceId));
  }

  async #watch(id: string, cancelled: AbortController): Promise<void> {
    if (await isCancelRequested(this.database.pool, id).catch(() => false)) cancelled.abort();
  }

  get #root(): string {
    return path.join(this.config.dataDir, 'hosting', 'deploys');
  }

  #folder(id: string): string {
    return path.join(this.#root, id);
  }
}

const readyWith = ({ versionId, reused }: DeployOutcome): DeployEnd => ({ state: 'ready', versionId, reused });
const cancelledEnd = (detail: string): DeployEnd => ({ state: 'cancelled', error: { code: 'build_cancelled', detail, line: null } });

/** What another attempt may not meet: an engine, a database or an object store that does not answer. */
function isPassing(error: unknown): boolean {
  if (error instanceof HostingError) return error.code === 'engine_unavailable';
  if (error instanceof BlobError) return error.kind === 'unavailable';
  return !(error instanceof PalestraError) || error.code === 'database_unavailable';
}

const isExplained = (error: unknown): boolean => error instanceof HostingError || error instanceof PalestraError;
const textOf = (error: unknown): string => (isExplained(error) ? (error as Error).message : 'The service had an internal error.');

function errorOf(error: unknown, log: DeployLog): DeployError {
  if (error instanceof HostingError) return { code: error.code, detail: error.message, line: log.numberOf(error.line) };
  if (error instanceof PalestraError) return { code: error.code, detail: error.message, line: null };
  return {
    code: 'internal_error',
    detail: 'The service had an internal error. Deploy again, or ask the operator for its log.',
    line: null,
  };
}

import { systemClock } from '@palestra/kit';
import {
  type ChannelList,
  type ChannelView,
  type CreateDeployInput,
  type DeployList,
  type DeployOptionsInput,
  type DeployView,
  FINAL_DEPLOY_STATES,
  type GitLinkBody,
  type GitLinkView,
  type HostingLogLine,
  type HostingSettings,
  type HostingSettingsInput,
  type InstanceList,
  type InstanceView,
  type LinkedGit,
  type LogSeverity,
  type SecretList,
  type VersionDiff,
} from '@palestra/protocol';
import type { Connection } from './connection.ts';
import { environmentPath, query } from './environments.ts';
import { ConnectionError } from './errors.ts';
import { jsonLines } from './log-lines.ts';
import { noRetry, requestRetry, uploadRetry, withRetry } from './retry.ts';

/** Which lines of a log to read. */
export interface LogOptions {
  /** Only lines after the one with this `seq`. */
  after?: number;
  /** Begin with the last so many lines, at most 10 000. */
  tail?: number;
  /** Least severity. */
  severity?: LogSeverity;
  /** Only lines with this text, in any case. At most 200 characters. */
  search?: string;
  /** Also read what is written from now on. An interrupted connection continues after the last line. */
  follow?: boolean;
  signal?: AbortSignal;
}

/** Which lines of the instances of an environment to read. */
export interface RuntimeLogOptions extends LogOptions {
  /** Number of a version. */
  version?: number;
  /** Id of an instance. */
  instance?: string;
}

/** Of an uploaded folder. */
export type UploadDeployOptions = DeployOptionsInput & { signal?: AbortSignal };

/** Lines of one request. */
const PAGE = 10_000;
const RECONNECT_MS = 500;

/** Deploys of environments that the service runs, their versions in use, instances, logs and secrets (docs/hosting.md). */
export class Hosting {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /**
   * Builds a version from a git repository, an image or URLs, and promotes it when it is ready. Resolves when the deploy is queued. Not
   * retried, because a repeat could deploy twice.
   */
  async deploy(environment: string, body: CreateDeployInput): Promise<DeployView> {
    return (await this.#connection.json({ method: 'POST', path: deploysOf(environment), body, retry: noRetry })) as DeployView;
  }

  /** Like `deploy`, from a folder: `archive` is a tar file, compressed with gzip, of at most 512 MB. */
  async deployFolder(environment: string, archive: AsyncIterable<Uint8Array> | Blob, options: UploadDeployOptions): Promise<DeployView> {
    const { channel, create, private: isPrivate, dockerfile, signal } = options;
    const search = query({
      // An empty channel is none; undefined is the default.
      channel: channel === null ? '' : channel,
      create: create === undefined ? undefined : String(create),
      private: isPrivate === undefined ? undefined : String(isPrivate),
      dockerfile,
    });
    const headers = { 'content-type': 'application/gzip' };
    const call = { method: 'POST', path: deploysOf(environment) + search, headers, signal, retry: noRetry } as const;
    return (await this.#connection.upload(call, () => archive)) as DeployView;
  }

  /** The last deploys, newest first. */
  async deploys(environment: string): Promise<DeployView[]> {
    return ((await this.#connection.json({ path: deploysOf(environment) })) as DeployList).deploys;
  }

  async getDeploy(id: string, signal?: AbortSignal): Promise<DeployView> {
    return (await this.#connection.json({ path: deployPath(id), signal })) as DeployView;
  }

  /** Requests the end of a deploy. Its state becomes `cancelled` when the build has ended; one that has ended keeps its state. */
  async cancelDeploy(id: string, signal?: AbortSignal): Promise<DeployView> {
    return (await this.#connection.json({ method: 'POST', path: `${deployPath(id)}/cancel`, signal })) as DeployView;
  }

  /** The build log of a deploy. With `follow` it ends with the deploy. */
  async *deployLogs(id: string, options: LogOptions = {}): AsyncGenerator<HostingLogLine> {
    const path = `${deployPath(id)}/logs`;
    if (!options.follow) return yield* this.#read(path, options);
    let after = options.after ?? 0;
    for await (const line of this.#follow(path, options, async () => isFinal(await this.getDeploy(id, options.signal)))) {
      after = line.seq;
      yield line;
    }
    // A server that stops may end the stream before the last lines.
    yield* this.#read(path, { ...options, tail: undefined, after });
  }

  /** The log of the instances of an environment. With `follow` it ends only when `signal` aborts, with its reason. */
  async *logs(environment: string, options: RuntimeLogOptions = {}): AsyncGenerator<HostingLogLine> {
    const path = `${environmentPath(environment)}/logs`;
    yield* options.follow ? this.#follow(path, options, async () => false) : this.#read(path, options);
  }

  /** Running instances and those that ended lately, and the sessions that wait for one. */
  async instances(environment: string): Promise<InstanceList> {
    return (await this.#connection.json({ path: `${environmentPath(environment)}/instances` })) as InstanceList;
  }

  /** Replaces an instance. Its sessions end on the old one. */
  async restartInstance(environment: string, id: string): Promise<InstanceView> {
    const path = `${environmentPath(environment)}/instances/${encodeURIComponent(id)}/restart`;
    return (await this.#connection.json({ method: 'POST', path })) as InstanceView;
  }

  async channels(environment: string): Promise<ChannelView[]> {
    return ((await this.#connection.json({ path: `${environmentPath(environment)}/channels` })) as ChannelList).channels;
  }

  /**
   * Points a channel at a version; open sessions stay on theirs. `percent` under 100: the version is a canary, which gets this share of new
   * sessions. Default channel: `stable`.
   */
  async promote(environment: string, version: number, options: { channel?: string; percent?: number } = {}): Promise<ChannelView> {
    const body = { version, ...options };
    return (await this.#connection.json({ method: 'POST', path: `${environmentPath(environment)}/promote`, body })) as ChannelView;
  }

  /** Ends the canary of a channel, or else returns it to the version before. Not retried, because a repeat could undo it. */
  async rollback(environment: string, channel?: string): Promise<ChannelView> {
    const path = `${environmentPath(environment)}/rollback`;
    return (await this.#connection.json({ method: 'POST', path, body: { channel }, retry: noRetry })) as ChannelView;
  }

  /** What version `to` changes for clients of version `from`. */
  async diff(environment: string, from: number, to: number): Promise<VersionDiff> {
    return (await this.#connection.json({ path: `${environmentPath(environment)}/versions/${from}/diff/${to}` })) as VersionDiff;
  }

  /** Scale, limits and network of its instances. */
  async settings(environment: string): Promise<HostingSettings> {
    return (await this.#connection.json({ path: `${environmentPath(environment)}/hosting` })) as HostingSettings;
  }

  /** Replaces all settings: what is absent gets its default. */
  async setSettings(environment: string, settings: HostingSettingsInput): Promise<HostingSettings> {
    return (await this.#connection.json({
      method: 'PUT',
      path: `${environmentPath(environment)}/hosting`,
      body: settings,
    })) as HostingSettings;
  }

  /** Names of its secrets. No route returns a value. */
  async secrets(environment: string): Promise<SecretList['secrets']> {
    return ((await this.#connection.json({ path: `${environmentPath(environment)}/secrets` })) as SecretList).secrets;
  }

  /** Sets a secret, which instances that start from now on have as a file. */
  async setSecret(environment: string, name: string, value: string): Promise<void> {
    await this.#connection.json({ method: 'PUT', path: secretPath(environment, name), body: { value } });
  }

  async deleteSecret(environment: string, name: string): Promise<void> {
    await this.#connection.json({ method: 'DELETE', path: secretPath(environment, name) });
  }

  /** The git repository whose pushes are deployed; null: none. */
  async gitLink(environment: string): Promise<GitLinkView | null> {
    return ((await this.#connection.json({ path: gitPath(environment) })) as { link: GitLinkView | null }).link;
  }

  /** Links a git repository. Only the answer to the first link has the secret of its webhook, so it is not retried. */
  async linkGit(environment: string, body: GitLinkBody): Promise<LinkedGit> {
    return (await this.#connection.json({ method: 'PUT', path: gitPath(environment), body, retry: noRetry })) as LinkedGit;
  }

  /** Replaces the secret of the webhook. Only this answer has it. */
  async replaceGitSecret(environment: string): Promise<LinkedGit> {
    return (await this.#connection.json({ method: 'POST', path: `${gitPath(environment)}/secret`, retry: noRetry })) as LinkedGit;
  }

  async unlinkGit(environment: string): Promise<void> {
    await this.#connection.json({ method: 'DELETE', path: gitPath(environment) });
  }

  /** The lines that exist, page by page. */
  async *#read(path: string, options: RuntimeLogOptions): AsyncGenerator<HostingLogLine> {
    let after = options.after;
    for (;;) {
      const limit = options.tail ?? PAGE;
      let count = 0;
      for await (const line of await this.#open(path, options, { after, limit, tail: options.tail })) {
        count += 1;
        after = line.seq;
        yield line;
      }
      if (options.tail !== undefined || count < limit) return;
    }
  }

  /** Lines as they are written, each once. `isComplete` says whether a stream that the server ended has no more. */
  async *#follow(path: string, options: RuntimeLogOptions, isComplete: () => Promise<boolean>): AsyncGenerator<HostingLogLine> {
    const { signal } = options;
    let { after, tail } = options;
    for (;;) {
      const lines = await this.#open(path, options, { after, tail, limit: PAGE, follow: 'true' });
      try {
        for await (const line of lines) {
          after = line.seq;
          tail = undefined;
          yield line;
        }
        if (await isComplete()) return;
      } catch (error) {
        // An interrupted or silent stream is resumed after its last line.
        if (signal?.aborted || !(error instanceof ConnectionError)) throw error;
      }
      await systemClock.sleep(RECONNECT_MS, signal);
    }
  }

  async #open(
    path: string,
    { severity, search, version, instance, signal }: RuntimeLogOptions,
    page: Record<string, string | number | undefined>,
  ): Promise<AsyncGenerator<HostingLogLine>> {
    const call = { path: path + query({ ...page, severity, q: search, version, instance }), signal };
    return jsonLines<HostingLogLine>(
      await withRetry(() => this.#connection.openStream(call), page['follow'] === undefined ? requestRetry : uploadRetry, signal),
    );
  }
}

const deploysOf = (environment: string): string => `${environmentPath(environment)}/deploys`;
const gitPath = (environment: string): string => `${environmentPath(environment)}/git`;
const deployPath = (id: string): string => `/v1/deploys/${encodeURIComponent(id)}`;
const secretPath = (environment: string, name: string): string => `${environmentPath(environment)}/secrets/${encodeURIComponent(name)}`;
const isFinal = ({ state }: DeployView): boolean => FINAL_DEPLOY_STATES.has(state);

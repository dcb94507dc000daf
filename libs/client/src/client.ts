import type { ApiKeyView, CreatedKey, MeView, RotatedSecret, SignInLink } from '@palestra/protocol';
import { Connection, type ConnectionOptions } from './connection.ts';
import { Environments } from './environments.ts';
import { Hosting } from './hosting.ts';
import { TaskExports } from './task-exports.ts';
import { TaskSets } from './task-sets.ts';
import { noRetry } from './retry.ts';
import { RolloutExports } from './rollout-exports.ts';
import type { UploadReport, UploaderOptions } from './rollout-uploader.ts';
import { Rollouts } from './rollouts.ts';
import { Runs } from './runs.ts';
import { type AttachOptions, Session, type SessionOptions } from './session.ts';
import { Sessions } from './sessions.ts';

export interface ClientOptions extends ConnectionOptions {
  uploads?: UploaderOptions;
}

/** A typed client of a Palestra server. One instance per process is enough. */
export class PalestraClient {
  readonly environments: Environments;
  readonly hosting: Hosting;
  readonly rollouts: Rollouts;
  readonly runs: Runs;
  readonly exports: TaskExports;
  readonly taskSets: TaskSets;
  readonly rolloutExports: RolloutExports;
  readonly sessions: Sessions;
  readonly keys: Keys;
  readonly #connection: Connection;

  constructor(options: ClientOptions) {
    this.#connection = new Connection(options);
    this.environments = new Environments(this.#connection);
    this.hosting = new Hosting(this.#connection);
    this.rollouts = new Rollouts(this.#connection, options.uploads);
    this.runs = new Runs(this.#connection);
    this.exports = new TaskExports(this.#connection);
    this.taskSets = new TaskSets(this.#connection);
    this.rolloutExports = new RolloutExports(this.#connection);
    this.sessions = new Sessions(this.#connection);
    this.keys = new Keys(this.#connection);
  }

  get url(): string {
    return this.#connection.url;
  }

  /** Whether sessions and the rest of the API have the same origin. */
  get isOneOrigin(): boolean {
    return this.#connection.isOneOrigin;
  }

  /** Opens a session for a task. The caller must close it. */
  session(options: SessionOptions): Promise<Session> {
    return Session.open(this.#connection, options);
  }

  /** Attaches to an open session of `sessions.open`, `sessions.fork` or another process. The caller must close it. */
  attach(sid: string, options: AttachOptions = {}): Session {
    return Session.attach(this.#connection, sid, options);
  }

  /** Replaces the key of all later requests, such as after the old one was revoked. Queued uploads continue with it. */
  setApiKey(apiKey: string): void {
    this.#connection.setApiKey(apiKey);
  }

  async me(): Promise<MeView> {
    return (await this.#connection.json({ path: '/v1/me' })) as MeView;
  }

  /**
   * A link that signs a browser in, once, with the rights of the key, and then shows the page at `path`. The key needs the scope `keys`.
   */
  async signInLink(path = '/'): Promise<string> {
    const { user } = await this.me();
    const route = `/v1/members/${encodeURIComponent(user.id)}/sign-in-link`;
    const { sign_in_url } = (await this.#connection.json({ method: 'POST', path: route, retry: noRetry })) as SignInLink;
    const link = new URL(sign_in_url);
    if (link.protocol !== 'http:' && link.protocol !== 'https:') throw new TypeError(`the sign-in link has the scheme ${link.protocol}`);
    if (path !== '/') link.searchParams.set('next', path);
    return link.href;
  }

  /** Tries to store all uploads, then closes the connections. Events that could not be stored remain in `rollouts.unsent()`. */
  async close(): Promise<UploadReport> {
    const report = await this.rollouts.flush();
    await this.#connection.close();
    return report;
  }
}

/** The API keys of the caller's organisation. */
class Keys {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async list(): Promise<ApiKeyView[]> {
    return ((await this.#connection.json({ path: '/v1/keys' })) as { keys: ApiKeyView[] }).keys;
  }

  /** Only this response contains the whole key, as `key`. */
  async create(name: string, scopes?: string[]): Promise<CreatedKey> {
    return (await this.#connection.json({ method: 'POST', path: '/v1/keys', body: { name, scopes }, retry: noRetry })) as CreatedKey;
  }

  async revoke(id: string): Promise<ApiKeyView> {
    return (await this.#connection.json({ method: 'DELETE', path: `/v1/keys/${encodeURIComponent(id)}` })) as ApiKeyView;
  }

  /** Replaces the key that encrypts secrets of sessions. Only for owners of the organisation that runs the service. */
  async rotateSecret(dropPrevious = false): Promise<RotatedSecret> {
    const body = { drop_previous: dropPrevious };
    return (await this.#connection.json({ method: 'POST', path: '/v1/keys/rotate-secret', body, retry: noRetry })) as RotatedSecret;
  }
}

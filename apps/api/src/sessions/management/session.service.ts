import { Inject, Injectable } from '@nestjs/common';
import { newUuid } from '@palestra/kit';
import {
  type ForkSession,
  type OpenSession,
  PalestraError,
  type SessionCallList,
  type SessionCallListQuery,
  type SessionCallView,
  type SessionForkView,
  type SessionList,
  type SessionListQuery,
  type SessionRun,
  type SessionStateView,
  type SessionView,
} from '@palestra/protocol';
import type { Caller, EnvironmentDirectory, HostedEnvironment, Recording, SecretMap } from '@palestra/session';
import { ENVIRONMENT_DIRECTORY } from '../../environments/directory.token.ts';
import { Database } from '../../platform/database/database.ts';
import {
  ownsSession,
  selectCalls,
  selectSession,
  selectSessions,
  selectWholeCall,
  type SessionFilter,
  type SessionRowRecord,
} from '../views/session-list.sql.ts';
import { presentCall, presentSession, presentSessionDetail } from '../views/session.presenter.ts';
import { SessionServer } from '../server/session-server.ts';

const DISCOVERY_DEADLINE_MS = 120_000;

/** Lists, opens, ends and forks sessions. Methods throw `session_not_found` for a session of another organisation. */
@Injectable()
export class SessionService {
  constructor(
    @Inject(Database) private readonly database: Database,
    @Inject(SessionServer) private readonly server: SessionServer,
    @Inject(ENVIRONMENT_DIRECTORY) private readonly directory: EnvironmentDirectory,
  ) {}

  async list(caller: Caller, query: SessionListQuery): Promise<SessionList> {
    const { state, environment, run, key_id: keyId, failure_class: failureClass, forked_from: forkedFrom, cursor, limit } = query;
    const filter: SessionFilter = { orgId: caller.orgId, environment, run, keyId, failureClass, forkedFrom, after: null, limit: limit + 1 };
    if (state !== undefined) {
      filter.live = state.includes('live');
      filter.ended = state.includes('ended');
      filter.states = state.filter((name) => name !== 'live' && name !== 'ended');
    }
    if (cursor !== undefined) filter.after = readCursor(cursor);
    const rows = await selectSessions(this.database.pool, filter);
    const page = rows.slice(0, limit);
    return { sessions: page.map(presentSession), next_cursor: rows.length > limit ? cursorOf(page.at(-1)!) : null };
  }

  async get(caller: Caller, id: string): Promise<SessionView> {
    const sid = await this.server.engine.sidOf(caller, id);
    // A client that reads the total after its last call finds its reward in it.
    await this.server.settled();
    const row = isStorable(sid) ? await selectSession(this.database.pool, caller.orgId, sid) : null;
    if (row === null) throw new PalestraError('session_not_found', { detail: 'No such session.' });
    return presentSessionDetail(row, await this.#isDeterministic(row.version_id));
  }

  /** Whether the environment itself can report the state of the episode: its backend is native and the session is alive. */
  async hasNativeState(caller: Caller, sid: string): Promise<boolean> {
    const row = isStorable(sid) ? await selectSession(this.database.pool, caller.orgId, sid) : null;
    if (row === null) throw new PalestraError('session_not_found', { detail: 'No such session.' });
    if (row.ended_at !== null || row.version_id === null) return false;
    return (await this.directory.version(row.version_id)).backend.native !== undefined;
  }

  /** `native`: the result of `hasNativeState`. Throws `environment_failed` when the environment reports an error. */
  async state(caller: Caller, sid: string, native: boolean): Promise<SessionStateView> {
    if (native) {
      return { source: 'environment', state: await this.server.engine.nativeState(caller, sid) };
    }
    const { calls, total_reward: totalReward, state, task } = await this.get(caller, sid);
    const position = task?.['kind'] === 'index' ? { split: task['split'], index: task['index'] } : {};
    const ledgerState = { episode_id: sid, step_count: calls.total - calls.running, ...position, total_reward: totalReward, state };
    return { source: 'ledger', state: ledgerState };
  }

  async calls(caller: Caller, id: string, { after, limit }: SessionCallListQuery): Promise<SessionCallList> {
    const sid = await this.requireSid(caller, id);
    await this.server.settled();
    const rows = await selectCalls(this.database.pool, sid, after, limit + 1);
    const page = rows.slice(0, limit).map(presentCall);
    return { calls: page, next_after: rows.length > limit ? page.at(-1)!.seq : null };
  }

  /** One call with all of its input and result. */
  async call(caller: Caller, id: string, taskId: string): Promise<SessionCallView> {
    const sid = await this.requireSid(caller, id);
    const row = isStorable(taskId) ? await selectWholeCall(this.database.pool, sid, taskId) : null;
    if (row === null) throw new PalestraError('session_not_found', { detail: 'The session has no such call.' });
    return presentCall(row);
  }

  /** The SID of a client's session id. Throws `session_not_found` unless the caller's organisation has that session. */
  async requireSid(caller: Caller, id: string): Promise<string> {
    const sid = await this.server.engine.sidOf(caller, id);
    if (isStorable(sid) && (await ownsSession(this.database.pool, caller.orgId, sid))) return sid;
    throw new PalestraError('session_not_found', { detail: 'No such session.' });
  }

  /**
   * Reserves and opens a session. Waits for a slot where they are limited; `signal` ends that wait. Throws `session_moved` when the slot is on
   * another process: send the same request there. Also throws the errors of `SessionEngine.reserve` and `create`.
   */
  async open(caller: Caller, body: OpenSession & { sid: string }, signal: AbortSignal): Promise<void> {
    const { engine } = this.server;
    const hosted = await this.directory.resolve(body.environment, caller);
    const variant = await variantOf(hosted, body.variant ?? null);
    const secrets = readSecrets(body.secrets);
    const recording = recordingOf(body.run);
    await engine.reserve(caller, { sid: body.sid, hosted, secrets, recording });
    try {
      await engine.create(caller, {
        sid: body.sid,
        resolve: async () => hosted,
        variant: async () => variant,
        task: 'task_spec' in body ? { kind: 'spec', spec: body.task_spec } : { kind: 'index', split: body.split!, index: body.index! },
        toolsetName: body.toolset_name ?? null,
        secrets,
        recording,
        signal,
      });
    } catch (error) {
      // A failed session must not keep a slot. But a session that existed before must not be deleted.
      const code = error instanceof PalestraError ? error.code : null;
      if (code !== 'session_moved' && code !== 'session_exists') await engine.delete(caller, body.sid);
      throw error;
    }
  }

  /** Ends the session and runs its teardown. Does not change a session that has ended. */
  async end(caller: Caller, sid: string): Promise<SessionView> {
    await this.server.engine.delete(caller, sid);
    return this.get(caller, sid);
  }

  async fork(caller: Caller, sid: string, body: ForkSession): Promise<SessionForkView> {
    const forked = await this.server.engine.fork(caller, { sid, atCall: body.at_call ?? null, recording: recordingOf(body.run) });
    const { forked_from: origin } = await this.get(caller, forked);
    return { sid: forked, forked_from: sid, at_call: origin?.at_call ?? 0 };
  }

  async #isDeterministic(versionId: string | null): Promise<boolean> {
    if (versionId === null) return false;
    const hosted = await this.directory.version(versionId).catch(() => null);
    return hosted?.policy.deterministic === true;
  }
}

/** PostgreSQL's text cannot contain NUL, so no stored id does. */
const isStorable = (id: string): boolean => !id.includes('\0');

const cursorOf = ({ created_at: createdAt, sid }: SessionRowRecord): string =>
  Buffer.from(JSON.stringify([createdAt.getTime(), sid])).toString('base64url');

function readCursor(cursor: string): { createdAt: Date; sid: string } {
  try {
    const [time, sid] = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')) as [unknown, unknown];
    if (Number.isSafeInteger(time) && typeof sid === 'string' && isStorable(sid)) return { createdAt: new Date(time as number), sid };
  } catch {
    // The error is thrown below.
  }
  throw new PalestraError('invalid_request', { detail: 'cursor: not a next_cursor of an earlier page.' });
}

async function variantOf(hosted: HostedEnvironment, name: string | null): Promise<string | null> {
  if (name === null) return null;
  const variant = name.toLowerCase();
  const names = await hosted.backend.environments(AbortSignal.timeout(DISCOVERY_DEADLINE_MS));
  if (names.includes(variant)) return variant;
  throw new PalestraError('unknown_variant', { detail: `unknown environment '${name}'` });
}

/** The secrets of a request in the form that the engine takes. */
export function readSecrets(secrets: OpenSession['secrets']): SecretMap | null {
  if (!secrets) return null;
  return Object.fromEntries(
    Object.entries(secrets).map(([name, secret]) => {
      const { value, allowed_domains: domains } = typeof secret === 'string' ? { value: secret, allowed_domains: undefined } : secret;
      return [name, domains === undefined ? { value } : { value, allowed_domains: domains }];
    }),
  );
}

function recordingOf(run: SessionRun | null | undefined): Recording | null {
  if (!run) return null;
  const { name, rollout = null, step = null, split = null, task_index: taskIndex = null, metadata = null } = run;
  return { run: name, rolloutId: newUuid(), name: rollout, step, split, taskIndex, metadata };
}

import {
  type JsonValue,
  PalestraError,
  parseBody,
  readCallBody,
  readCreateBody,
  readCreateSessionBody,
  readScoreGroupBody,
  readSplitBody,
  readTaskBody,
  readTaskRangeBody,
} from '@palestra/protocol';
import {
  type EnvironmentDirectory,
  listAllTasks,
  type HostedEnvironment,
  type OpenCall,
  type Recording,
  type SessionEngine,
  decodeSecrets,
} from '@palestra/session';
import { type OrsAddress, type ResolvedAddress, OrsAddressResolver, unknownEnvironment } from './ors-address.ts';

export interface OrsRequest extends OrsAddress {
  /** The encoded `X-Secrets`. */
  secrets: string | null;
  /** Set if the session is recorded as a rollout. */
  recording: Recording | null;
  body: Buffer | null;
  /** `Idempotency-Key` of a call (libs/session/src/calls/idempotency-key.ts). */
  idempotencyKey: string | null;
}

/** After this, discovery fails with `backend_timeout`. */
const DISCOVERY_DEADLINE_MS = 120_000;

/**
 * Serves ORS over the session engine (docs/reference/ors.md#endpoints). One method per operation; each returns the JSON value of a 200 or
 * the stream. Independent of the web framework.
 */
export class OrsServer {
  readonly #addresses: OrsAddressResolver;
  /** Throws while the service cannot serve clients. */
  readonly #checkHealth: () => void;

  constructor(
    readonly engine: SessionEngine,
    readonly directory: EnvironmentDirectory,
    readonly version: string,
    checkHealth: () => void = () => {},
  ) {
    this.#checkHealth = checkHealth;
    this.#addresses = new OrsAddressResolver(engine, directory);
  }

  health(): JsonValue {
    this.#checkHealth();
    return { status: 'ok' };
  }

  serverVersion(): JsonValue {
    return { version: this.version, build_sha: null };
  }

  async listEnvironments(request: OrsRequest): Promise<JsonValue> {
    const { hosted } = await this.#addresses.resolve({ ...request, segment: null, owner: null }, discoveryDeadline());
    return this.#addresses.variants(hosted, discoveryDeadline());
  }

  async tools(request: OrsRequest): Promise<JsonValue> {
    return this.#discover(request, ({ hosted, variant }, signal) => hosted.backend.tools(variant, signal));
  }

  async splits(request: OrsRequest): Promise<JsonValue> {
    return this.#discover(request, ({ hosted, variant }, signal) => hosted.backend.splits(variant, signal));
  }

  async tasks(request: OrsRequest): Promise<JsonValue> {
    return this.#discover(request, async ({ hosted, variant, envName }, signal) => {
      const { split } = readSplitBody(parseBody(request.body));
      // A client in a session needs a list, also of environments without `list_tasks` (docs/reference/ors.md#third-party-clients). Other
      // clients get the environment's own answer.
      const list =
        request.sid === null ? hosted.backend.tasks(variant, split, signal) : listAllTasks(hosted.backend, variant, split, signal);
      return { tasks: await list, env_name: envName };
    });
  }

  async numTasks(request: OrsRequest): Promise<JsonValue> {
    return this.#discover(request, async ({ hosted, variant }, signal) => {
      const { split } = readSplitBody(parseBody(request.body));
      return { num_tasks: await hosted.backend.numTasks(variant, split, signal) };
    });
  }

  async task(request: OrsRequest): Promise<JsonValue> {
    return this.#discover(request, async ({ hosted, variant, envName }, signal) => {
      const { split, index } = readTaskBody(parseBody(request.body));
      return { task: await hosted.backend.task(variant, split, index, signal), env_name: envName };
    });
  }

  async taskRange(request: OrsRequest): Promise<JsonValue> {
    return this.#discover(request, async ({ hosted, variant, envName }, signal) => {
      const { split, start, stop } = readTaskRangeBody(parseBody(request.body));
      return { tasks: await hosted.backend.taskRange(variant, split, start, stop, signal), env_name: envName };
    });
  }

  /** Returns the SID and the id for the `task_id` event. A repeated `task_id` gets the same session. */
  async createSession(request: OrsRequest): Promise<{ sid: string; clientSid: string }> {
    const { taskId, env } = readCreateSessionBody(parseBody(request.body));
    if (env !== null && Object.keys(env).length > 0) throw new PalestraError('override_not_allowed');
    const secrets = decodeSecrets(request.secrets);
    const hosted = await this.#reservedEnvironment(request);
    const again = taskId === null ? null : await this.engine.sidOf(request.caller, taskId);
    const sid = await this.engine.reserve(request.caller, { sid: again, hosted, secrets, recording: request.recording });
    return { sid, clientSid: taskId ?? sid };
  }

  /** null: the request names none and there is no fallback. ORS clients send no header; `/create` names it later. */
  async #reservedEnvironment({ caller, deployment }: OrsRequest): Promise<HostedEnvironment | null> {
    try {
      return await this.directory.resolve(deployment, caller);
    } catch (error) {
      if (deployment === null && error instanceof PalestraError && error.code === 'deployment_not_found') return null;
      throw error;
    }
  }

  /** `signal` aborts when the client disconnects, which ends a wait for a slot. */
  async create(request: OrsRequest, signal: AbortSignal): Promise<JsonValue> {
    const body = readCreateBody(parseBody(request.body));
    const sid = requireSid(request);
    const name = body.env_name ?? null;
    await this.engine.create(request.caller, {
      sid,
      resolve: async () => {
        const reserved = await this.#reservedEnvironment(request);
        const variantKnown = reserved !== null && (name === null || (await this.#variantOf(reserved, name)) !== undefined);
        if (variantKnown) return reserved;
        const named = name === null || request.deployment !== null ? null : await this.#addresses.byName(name, request.caller);
        if (named === null) throw name === null ? new PalestraError('deployment_not_found') : unknownEnvironment(name);
        return named;
      },
      variant: async (hosted) => {
        if (name === null) return null;
        const variant = await this.#variantOf(hosted, name);
        if (variant === undefined) throw unknownEnvironment(name);
        return variant;
      },
      task:
        body.task_spec === undefined ? { kind: 'index', split: body.split!, index: body.index! } : { kind: 'spec', spec: body.task_spec },
      toolsetName: body.toolset_name ?? null,
      secrets: decodeSecrets(request.secrets),
      recording: request.recording,
      signal,
    });
    return { sid: request.clientSid ?? sid };
  }

  async #variantOf(hosted: HostedEnvironment, name: string): Promise<string | null | undefined> {
    return this.#addresses.variantOf(hosted, name, discoveryDeadline());
  }

  async prompt(request: OrsRequest): Promise<JsonValue> {
    return this.engine.prompt(request.caller, requireSid(request));
  }

  async messages(request: OrsRequest): Promise<JsonValue> {
    return this.engine.messages(request.caller, requireSid(request));
  }

  async taskTools(request: OrsRequest): Promise<JsonValue> {
    return this.engine.taskTools(request.caller, requireSid(request));
  }

  async call(request: OrsRequest): Promise<OpenCall> {
    const body = readCallBody(parseBody(request.body));
    const call = { tool: body.name, input: body.input, taskId: body.task_id ?? null, idempotencyKey: request.idempotencyKey };
    return this.engine.call(request.caller, requireSid(request), call);
  }

  async scoreGroup(request: OrsRequest): Promise<OpenCall> {
    const { candidates, taskId } = readScoreGroupBody(parseBody(request.body));
    return this.engine.scoreGroup(request.caller, requireSid(request), { candidates, taskId });
  }

  async ping(request: OrsRequest): Promise<JsonValue> {
    await this.engine.ping(request.caller, requireSid(request));
    return { status: 'ok' };
  }

  /** Clients send both `/delete` and `/delete_session`, sandboxes only the second. */
  async delete(request: OrsRequest): Promise<JsonValue> {
    const sid = requireSid(request);
    await this.engine.delete(request.caller, sid);
    return { sid: request.clientSid ?? sid };
  }

  async #discover<T>(request: OrsRequest, read: (address: ResolvedAddress, signal: AbortSignal) => Promise<T>): Promise<T> {
    const signal = discoveryDeadline();
    return read(await this.#addresses.resolve(request, signal), signal);
  }
}

const discoveryDeadline = () => AbortSignal.timeout(DISCOVERY_DEADLINE_MS);

function requireSid({ sid }: OrsRequest): string {
  if (sid === null || sid === '') throw new PalestraError('session_id_required');
  return sid;
}

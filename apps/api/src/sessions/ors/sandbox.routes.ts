import type { FastifyReply, FastifyRequest } from 'fastify';
import { newUuid } from '@palestra/kit';
import type { OrsRequest, OrsRoute, OrsSandbox } from '@palestra/ors/server';
import { type JsonObject, type JsonValue, PalestraError, parseBody, stringifyJson } from '@palestra/protocol';
import { z } from 'zod';
import { CHUNK_BYTES, type SandboxFiles } from '../../environments/hosting/sandboxes/sandbox-files.ts';
import { runSchema } from '../../environments/hosting/sandboxes/sandbox-run.ts';
import { RUN_TOOL, SandboxSession } from '../../environments/hosting/sandboxes/sandbox-session.ts';
import {
  createSandboxSchema,
  networkPolicySchema,
  policyOf,
  sandboxRequest,
} from '../../environments/hosting/sandboxes/sandbox-settings.ts';
import { onDelivery } from '../http/delivery.ts';
import type { ProtocolContext } from '../http/protocol.ts';
import { streamCall, streamReservation } from './sse-reply.ts';

/** The routes of sandboxes (docs/sandboxes.md). A sandbox is a session with one tool, so `/ping` and `/delete_session` are those of all. */

const OPERATIONS: Record<OrsSandbox, true> = {
  createSandbox: true,
  run: true,
  statFile: true,
  readFile: true,
  writeFile: true,
  setNetwork: true,
};

export const isSandboxOperation = (operation: OrsRoute['operation']): operation is OrsSandbox => operation in OPERATIONS;

type Serve = (request: FastifyRequest, reply: FastifyReply, ors: OrsRequest, context: ProtocolContext) => Promise<unknown>;

export async function serveSandbox(
  operation: OrsSandbox,
  request: FastifyRequest,
  reply: FastifyReply,
  ors: OrsRequest,
  context: ProtocolContext,
): Promise<void> {
  // Before the request is read: a session that is gone is the more useful error.
  if (operation !== 'createSandbox') await context.engine.ask(ors.caller, requireSid(ors), async (session) => void sandboxOf(session));
  await serve[operation](request, reply, ors, context);
}

/** Another request or process has the sandbox. */
const KEPT = new Set<string>(['session_exists', 'session_moved', 'shutting_down']);

const hasFailureEvents = (request: FastifyRequest): boolean => request.headers['x-palestra-failure'] !== undefined;
const sendJson = (reply: FastifyReply, value: JsonValue) => reply.type('application/json').send(stringifyJson(value));

const serve: Record<OrsSandbox, Serve> = {
  /** The stream opens with the SID after a while, so that a sandbox that cannot be made is an HTTP status. */
  async createSandbox(request, reply, ors, { engine, directory, sandboxes, onBackgroundError }) {
    const { caller } = ors;
    const wanted = sandboxRequest(read(createSandboxSchema, json(ors)), sandboxes.plainHosts);
    const environment = await directory.resolve(wanted.environment, caller).catch(() => null);
    const isNamed =
      environment !== null && [environment.name, `${environment.owner}/${environment.name}`].includes(bare(wanted.environment));
    if (!isNamed) throw unknownEnvironment(wanted.environment);
    const hosted = await sandboxes.wanted(environment, caller, wanted);
    const { taskId } = wanted;
    const sid = taskId === null ? newUuid() : await engine.sidOf(caller, taskId);
    // The client has the id, so it did not get the end of that answer.
    if (taskId !== null) await engine.markCreateUndelivered(sid);
    const remove = () => void engine.delete(caller, sid).catch((error: unknown) => onBackgroundError(error, sid));
    onDelivery(request, reply, (delivery) => {
      if (delivery === 'undelivered') void engine.markCreateUndelivered(sid);
    });
    const create = async (signal: AbortSignal) => {
      try {
        const task = { kind: 'spec', spec: wanted.stored } as const;
        const resolve = async () => hosted;
        await engine.create(caller, {
          sid,
          resolve,
          variant: async () => null,
          task,
          toolsetName: null,
          secrets: null,
          recording: null,
          signal,
        });
      } catch (error) {
        if (!(error instanceof PalestraError && KEPT.has(error.code))) remove();
        throw error;
      }
    };
    // A client that has the id returns with it.
    const onAbandoned = taskId === null ? { onAbandoned: remove } : {};
    const options = { admit: create, showPosition: false, hasFailureEvents: hasFailureEvents(request), ...onAbandoned };
    await streamReservation(reply, taskId ?? sid, options);
  },

  async run(request, reply, ors, { engine }) {
    const sid = requireSid(ors);
    const { task_id: taskId, ...input } = read(runSchema, json(ors));
    const call = await engine.call(ors.caller, sid, { tool: RUN_TOOL, input: input as JsonObject, taskId: taskId ?? null });
    await streamCall(request, reply, call, { holdForRefusalMs: 0, hasFailureEvents: hasFailureEvents(request) });
  },

  async statFile(request, reply, ors, context) {
    const { path, sha256 } = read(fileQuery, request.query);
    await sendJson(reply, await onFiles(ors, context, (files, signal) => files.stat(path, sha256, signal)));
  },

  async readFile(request, reply, ors, context) {
    const { path, offset, length } = read(fileQuery, request.query);
    const { bytes, size } = await onFiles(ors, context, (files, signal) => files.read(path, offset, length, signal));
    await reply.type('application/octet-stream').header('x-file-size', String(size)).send(bytes);
  },

  async writeFile(request, reply, ors, context) {
    const { path, offset, mkdirs: makeFolders, commit, size } = read(fileQuery, request.query);
    const bytes = ors.body ?? Buffer.alloc(0);
    if (bytes.length > CHUNK_BYTES)
      throw new PalestraError('body_too_large', { detail: `A piece of a file has at most ${CHUNK_BYTES} bytes.` });
    if (commit && size === undefined)
      throw new PalestraError('invalid_request', { detail: 'size is missing: the bytes of the whole file' });
    const write = (files: SandboxFiles, signal: AbortSignal) =>
      commit ? files.commit(path, size!, signal) : files.write(path, { offset, makeFolders, bytes }, signal);
    await sendJson(reply, await onFiles(ors, context, write));
  },

  async setNetwork(_request, reply, ors, { engine, sandboxes }) {
    const network = policyOf(read(networkPolicySchema, json(ors)), sandboxes.plainHosts);
    await engine.ask(ors.caller, requireSid(ors), (session, signal) => sandboxOf(session).setNetwork(network, signal));
    await sendJson(reply, { status: 'applied' });
  },
};

const flag = z
  .enum(['0', '1'])
  .default('0')
  .transform((text) => text === '1');
const count = z.coerce.number().int().min(0);
const fileQuery = z.object({
  path: z.string().regex(/^\/[^\0]{1,4000}$/, 'want an absolute path'),
  sha256: flag,
  offset: count.default(0),
  length: count.max(CHUNK_BYTES).default(CHUNK_BYTES),
  mkdirs: flag,
  commit: flag,
  size: count.optional(),
});

function onFiles<T>(
  ors: OrsRequest,
  { engine }: ProtocolContext,
  work: (files: SandboxFiles, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return engine.ask(ors.caller, requireSid(ors), (session, signal) => sandboxOf(session).onFiles((files) => work(files, signal)));
}

/** Throws `invalid_request` for the session of an environment. */
function sandboxOf(session: object): SandboxSession {
  if (session instanceof SandboxSession) return session;
  throw new PalestraError('invalid_request', { detail: 'The session is not a sandbox. Open one with /create_sandbox.' });
}

const json = (ors: OrsRequest): unknown => parseBody(ors.body, (body) => JSON.parse(body) as JsonValue);

function read<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  // As pydantic does.
  const detail = parsed.error.issues.map(({ path, message, code }) => ({ type: code, loc: ['body', ...path.map(String)], msg: message }));
  throw new PalestraError('invalid_body', { detail });
}

function requireSid({ sid }: OrsRequest): string {
  if (sid === null || sid === '') throw new PalestraError('session_id_required');
  return sid;
}

/** Without a version or channel. */
const bare = (name: string): string => name.replace(/@[^@/]*$/, '');

function unknownEnvironment(name: string): PalestraError {
  const [owner, environment] = name.includes('/') ? name.split('/', 2) : ['your organisation', name];
  return new PalestraError('environment_not_found', { detail: `Environment '${environment}' of '${owner}' not found.` });
}

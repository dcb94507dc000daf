import { STATUS_CODES } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  askTasks,
  environmentNames,
  metadataOf,
  openApiOf,
  OpenEnvDialect,
  playOnce,
  readResetBody,
  readStepBody,
  sessionIdOf,
  type Stage,
  type TaskOperation,
} from '@palestra/openenv/server';
import { SESSION_BODY_LIMIT } from '../../platform/http/body.ts';
import { PalestraError, parseBody, stringifyJson } from '@palestra/protocol';
import type { ProtocolContext } from '../http/protocol.ts';
import { addContainerRoutes } from './openenv-container.routes.ts';
import { type AddRoute, askedBy, bodyOfRequest } from './openenv.handlers.ts';
import { addOpenEnvSockets } from './openenv.sockets.ts';

const BODY = { config: { rawBody: true, bodyLimit: SESSION_BODY_LIMIT } };
const RELAY_DEADLINE_MS = 120_000;
const BASE = '/openenv/:owner/:env';
const TASKS: TaskOperation[] = ['tasks', 'num_tasks', 'task', 'task_range'];

/**
 * Every environment as an OpenEnv server of its own at `/openenv/{owner}/{env}` (openenv-wire.md section 7). Bodies stay bytes: task specs and
 * actions keep their numbers.
 */
export async function openEnvPlugin(scope: FastifyInstance, options: ProtocolContext): Promise<void> {
  const { engine, directory, onBackgroundError } = options;
  const dialect = new OpenEnvDialect({ engine, directory, onBackgroundError });
  scope.setErrorHandler((error, request, reply) => options.sendError(error, request, reply));
  scope.addHook('onClose', () => dialect.seats.close());
  addOpenEnvSockets(dialect, options);

  const add: AddRoute = (method, path, handler) => {
    scope.route({
      method,
      url: BASE + path,
      ...BODY,
      exposeHeadRoute: false,
      handler: async (request, reply) => {
        const stage = await stageOf(dialect, options, request);
        const text = await handler(stage, request, reply);
        if (text !== null) await reply.type('application/json').send(text);
      },
    });
  };

  // Whoever waits for a server to come up has no key (openenv-wire.md 2.2).
  scope.get(`${BASE}/health`, async (request, reply) => {
    const caller = await options.authenticate(request);
    const { owner, env } = request.params as { owner: string; env: string };
    if (caller !== null) await directory.resolve(`${owner}/${env}`, caller);
    await reply.type('application/json').send('{"status":"healthy"}');
  });
  add('GET', '/metadata', async ({ shape, hosted }) => stringifyJson(metadataOf(shape, hosted)));
  add('GET', '/schema', async ({ shape }) => stringifyJson(shape.schema));
  add('GET', '/openapi.json', async ({ shape }) => stringifyJson(openApiOf(shape)));
  addPlay(dialect, add);
  addTasks(add);
  addMcp(dialect, options, scope, add);
  addContainerRoutes(dialect, options, add);
}

async function stageOf(dialect: OpenEnvDialect, { authenticate }: ProtocolContext, request: FastifyRequest): Promise<Stage> {
  const caller = await authenticate(request);
  if (caller === null) throw new PalestraError('unauthorized');
  const { owner, env } = request.params as { owner: string; env: string };
  return dialect.stage(caller, owner, env, askedBy(request.headers));
}

/** Each request plays on an environment of its own. */
function addPlay(dialect: OpenEnvDialect, add: AddRoute): void {
  add('POST', '/reset', async (stage, request, reply) => {
    if (stage.shape.native) return relay(stage, request, reply);
    const data = readResetBody(parseBody(bodyOfRequest(request)));
    return playOnce(dialect.episode(stage), (episode) => episode.reset(data));
  });
  add('POST', '/step', async (stage, request, reply) => {
    if (stage.shape.native) return relay(stage, request, reply);
    const action = readStepBody(parseBody(bodyOfRequest(request)));
    return playOnce(dialect.episode(stage), async (episode) => {
      if (action['type'] !== 'list_tools') await episode.reset({});
      return episode.step(action);
    });
  });
  add('GET', '/state', async (stage, request, reply) => {
    if (stage.shape.native) return relay(stage, request, reply);
    return playOnce(dialect.episode(stage), (episode) => episode.state());
  });
}

function addTasks(add: AddRoute): void {
  add('GET', '/list_environments', async (stage, request, reply) => {
    return stage.shape.native ? relay(stage, request, reply) : JSON.stringify(environmentNames(stage.hosted));
  });
  const ask = (operation: TaskOperation) => async (stage: Stage, request: FastifyRequest, reply: FastifyReply) => {
    if (stage.shape.native) return relay(stage, request, reply);
    const { variant } = request.params as { variant: string };
    return stringifyJson(await askTasks(stage.hosted, variant, operation, parseBody(bodyOfRequest(request))));
  };
  add('GET', '/:variant/splits', ask('splits'));
  for (const operation of TASKS) add('POST', `/:variant/${operation}`, ask(operation));
}

function addMcp(dialect: OpenEnvDialect, options: ProtocolContext, scope: FastifyInstance, add: AddRoute): void {
  add('POST', '/mcp', async (stage, request, reply) => {
    const text = bodyOfRequest(request)?.toString('utf8') ?? '';
    const id = sessionIdOf(text);
    const elsewhere = (sid: string) => options.routing.elsewhere(request, reply, stage.caller, sid);
    if (id !== null && (await dialect.place(stage, id, 'http', elsewhere))) return null;
    const gone = new AbortController();
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) gone.abort();
    });
    return dialect.mcp(stage, text, gone.signal);
  });
  scope.get(`${BASE}/mcp`, async () => {
    throw new PalestraError('method_not_allowed');
  });
}

/** Passes a stateless request on to the environment's own server. */
async function relay({ hosted }: Stage, request: FastifyRequest, reply: FastifyReply): Promise<null> {
  const path = (request.raw.url ?? '').replace(/^\/openenv\/[^/]+\/[^/?]+/, '');
  const answer = await hosted.backend.openenv!.relay(
    {
      method: request.method as 'GET' | 'POST',
      path,
      body: bodyOfRequest(request),
      contentType: request.headers['content-type'] ?? null,
    },
    AbortSignal.timeout(RELAY_DEADLINE_MS),
  );
  const isJson = /^application\/json\b/i.test(answer.contentType);
  // uvicorn words its failures as plain text: their status says the same. Anything else is not OpenEnv, and nothing of it is passed on.
  if (!isJson && answer.status < 400)
    throw new PalestraError('backend_invalid', { detail: 'The environment server answered with something other than JSON.' });
  await reply
    .code(answer.status)
    .type(isJson ? 'application/json' : 'text/plain')
    .send(isJson ? answer.body : (STATUS_CODES[answer.status] ?? ''));
  return null;
}

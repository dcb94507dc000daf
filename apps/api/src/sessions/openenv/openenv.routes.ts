import { STATUS_CODES } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import {
  askTasks,
  catalogOf,
  environmentNames,
  metadataOf,
  openApiOf,
  OpenEnvServer,
  openEnvUpstreamOf,
  playOnce,
  readResetBody,
  readStepBody,
  sessionIdOf,
  type RequestContext,
  type TaskOperation,
} from '@palestra/openenv/server';
import { SESSION_BODY_LIMIT } from '../../platform/http/body.ts';
import { PalestraError, parseBody, stringifyJson } from '@palestra/protocol';
import type { ProtocolContext } from '../http/protocol.ts';
import { addContainerRoutes } from './openenv-container.routes.ts';
import { type AddRoute, sessionOptionsOf, bodyOfRequest } from './openenv.handlers.ts';
import { addOpenEnvSockets } from './openenv.sockets.ts';

const BODY = { config: { rawBody: true, bodyLimit: SESSION_BODY_LIMIT } };
const RELAY_DEADLINE_MS = 120_000;
const BASE = '/openenv/:owner/:env';
const TASKS: TaskOperation[] = ['tasks', 'num_tasks', 'task', 'task_range'];

/**
 * Serves every environment as an OpenEnv server at `/openenv/{owner}/{env}` (docs/reference/openenv.md#http-routes). Bodies stay bytes, so
 * that task specs and actions keep the spelling of their numbers.
 */
export async function openEnvPlugin(scope: FastifyInstance, options: ProtocolContext): Promise<void> {
  const { engine, directory, onBackgroundError } = options;
  const server = new OpenEnvServer({ engine, directory, onBackgroundError });
  scope.setErrorHandler((error, request, reply) => options.sendError(error, request, reply));
  scope.addHook('onClose', () => server.connections.close());
  addOpenEnvSockets(server, options);

  const add: AddRoute = (method, path, handler) => {
    scope.route({
      method,
      url: BASE + path,
      ...BODY,
      exposeHeadRoute: false,
      handler: async (request, reply) => {
        const context = await contextOf(server, options, request);
        const text = await handler(context, request, reply);
        if (text !== null) await reply.type('application/json').send(text);
      },
    });
  };

  // Health probes carry no key (docs/reference/openenv.md#credentials).
  scope.get(`${BASE}/health`, async (request, reply) => {
    const caller = await options.authenticate(request);
    const { owner, env } = request.params as { owner: string; env: string };
    if (caller !== null) await directory.resolve(`${owner}/${env}`, caller);
    await reply.type('application/json').send('{"status":"healthy"}');
  });
  add('GET', '/metadata', async ({ shape, hosted }) => stringifyJson(metadataOf(shape, hosted)));
  add('GET', '/catalog.json', async ({ shape, hosted }, request) => stringifyJson(catalogOf(shape, hosted, addressOf(request))));
  add('GET', '/schema', async ({ shape }) => stringifyJson(shape.schema));
  add('GET', '/openapi.json', async ({ shape }) => stringifyJson(openApiOf(shape)));
  addPlay(server, add);
  addTasks(add);
  addMcp(server, options, scope, add);
  addContainerRoutes(server, options, add);
}

async function contextOf(server: OpenEnvServer, { authenticate }: ProtocolContext, request: FastifyRequest): Promise<RequestContext> {
  const caller = await authenticate(request);
  if (caller === null) throw new PalestraError('unauthorized');
  const { owner, env } = request.params as { owner: string; env: string };
  return server.resolve(caller, owner, env, sessionOptionsOf(request.headers));
}

/** The address of the environment, as the client knows it. */
function addressOf(request: FastifyRequest): string {
  const { owner, env } = request.params as { owner: string; env: string };
  return `${request.protocol}://${request.host}/openenv/${encodeURIComponent(owner)}/${encodeURIComponent(env)}`;
}

/** Stateless routes: each request plays on a new environment. */
function addPlay(server: OpenEnvServer, add: AddRoute): void {
  add('POST', '/reset', async (context, request, reply) => {
    if (context.shape.native) return relay(context, request, reply);
    const data = readResetBody(parseBody(bodyOfRequest(request)));
    return playOnce(server.createEpisode(context), (episode) => episode.reset(data));
  });
  add('POST', '/step', async (context, request, reply) => {
    if (context.shape.native) return relay(context, request, reply);
    const action = readStepBody(parseBody(bodyOfRequest(request)));
    return playOnce(server.createEpisode(context), async (episode) => {
      if (action['type'] !== 'list_tools') await episode.reset({});
      return episode.step(action);
    });
  });
  add('GET', '/state', async (context, request, reply) => {
    if (context.shape.native) return relay(context, request, reply);
    return playOnce(server.createEpisode(context), (episode) => episode.state());
  });
}

function addTasks(add: AddRoute): void {
  add('GET', '/list_environments', async (context, request, reply) => {
    return context.shape.native ? relay(context, request, reply) : JSON.stringify(environmentNames(context.hosted));
  });
  const ask = (operation: TaskOperation) => async (context: RequestContext, request: FastifyRequest, reply: FastifyReply) => {
    if (context.shape.native) return relay(context, request, reply);
    const { variant } = request.params as { variant: string };
    return stringifyJson(await askTasks(context.hosted, variant, operation, parseBody(bodyOfRequest(request))));
  };
  add('GET', '/:variant/splits', ask('splits'));
  for (const operation of TASKS) add('POST', `/:variant/${operation}`, ask(operation));
}

function addMcp(server: OpenEnvServer, options: ProtocolContext, scope: FastifyInstance, add: AddRoute): void {
  add('POST', '/mcp', async (context, request, reply) => {
    const text = bodyOfRequest(request)?.toString('utf8') ?? '';
    const id = sessionIdOf(text);
    const elsewhere = (sid: string) => options.routing.elsewhere(request, reply, context.caller, sid);
    if (id !== null && (await server.routeToOwner(context, id, 'http', elsewhere))) return null;
    const disconnected = new AbortController();
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) disconnected.abort();
    });
    return server.handleRpc(context, text, disconnected.signal);
  });
  scope.get(`${BASE}/mcp`, async () => {
    throw new PalestraError('method_not_allowed');
  });
}

/** Forwards a stateless request to the environment's own server. */
async function relay({ hosted }: RequestContext, request: FastifyRequest, reply: FastifyReply): Promise<null> {
  const path = (request.raw.url ?? '').replace(/^\/openenv\/[^/]+\/[^/?]+/, '');
  const answer = await openEnvUpstreamOf(hosted.backend)!.relay(
    {
      method: request.method as 'GET' | 'POST',
      path,
      body: bodyOfRequest(request),
      contentType: request.headers['content-type'] ?? null,
    },
    AbortSignal.timeout(RELAY_DEADLINE_MS),
  );
  const isJson = /^application\/json\b/i.test(answer.contentType);
  // uvicorn sends failures as plain text; only their status is passed on. A successful answer that is not JSON is not OpenEnv.
  if (!isJson && answer.status < 400)
    throw new PalestraError('backend_invalid', { detail: 'The environment server answered with something other than JSON.' });
  await reply
    .code(answer.status)
    .type(isJson ? 'application/json' : 'text/plain')
    .send(isJson ? answer.body : (STATUS_CODES[answer.status] ?? ''));
  return null;
}

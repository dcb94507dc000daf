import type { JsonObject } from '@palestra/protocol';
import type { EnvironmentShape } from './environment-info.ts';

const json = (schema: JsonObject) => ({ content: { 'application/json': { schema } } });
const answer = (schema: JsonObject) => ({ responses: { '200': { description: 'Successful Response', ...json(schema) } } });
const ANY: JsonObject = { type: 'object', additionalProperties: true };
const LIST: JsonObject = { type: 'array', items: {} };

const split = (properties: JsonObject = {}, required: string[] = []): JsonObject => ({
  type: 'object',
  additionalProperties: false,
  properties: { split: { type: 'string' }, ...properties },
  required: ['split', ...required],
});
const range: JsonObject = { start: { type: ['integer', 'null'] }, stop: { type: ['integer', 'null'] } };
const ofEnvironment = { parameters: [{ name: 'env_name', in: 'path', required: true, schema: { type: 'string' } }] };

/** `GET /openapi.json`, with paths relative to the environment's address. Servers in production mode publish no routes to play. */
export function openApiOf({ mode, schema }: EnvironmentShape): JsonObject {
  const { action, state } = schema as { action: JsonObject; state: JsonObject };
  const result = (observation: JsonObject) => ({
    type: 'object',
    properties: { observation, reward: { type: ['number', 'null'] }, done: { type: 'boolean' }, metadata: { type: ['object', 'null'] } },
  });
  const stepBody = {
    type: 'object',
    properties: { action, timeout_s: { type: 'number' }, request_id: { type: 'string' } },
    required: ['action'],
  };
  const resetBody = {
    type: 'object',
    properties: { seed: { type: 'integer', minimum: 0 }, episode_id: { type: 'string', maxLength: 255 } },
  };
  const observation = schema['observation'] as JsonObject;
  const play = {
    '/reset': { post: { requestBody: json(resetBody), ...answer(result((schema['reset_observation'] ?? observation) as JsonObject)) } },
    '/step': { post: { requestBody: json(stepBody), ...answer(result(observation)) } },
    '/state': { get: answer(state) },
  };
  return {
    openapi: '3.1.0',
    info: { title: 'OpenEnv Environment HTTP API', version: '1.0.0' },
    paths: {
      '/list_environments': { get: answer(LIST) },
      '/{env_name}/splits': { get: { ...ofEnvironment, ...answer(LIST) } },
      '/{env_name}/tasks': { post: { ...ofEnvironment, requestBody: json(split()), ...answer(ANY) } },
      '/{env_name}/num_tasks': { post: { ...ofEnvironment, requestBody: json(split()), ...answer(ANY) } },
      '/{env_name}/task': {
        post: { ...ofEnvironment, requestBody: json(split({ index: { type: 'integer' } }, ['index'])), ...answer(ANY) },
      },
      '/{env_name}/task_range': { post: { ...ofEnvironment, requestBody: json(split(range)), ...answer(ANY) } },
      ...(mode === 'simulation' && play),
      '/metadata': { get: answer(ANY) },
      '/health': { get: answer({ type: 'object', properties: { status: { enum: ['healthy', 'unhealthy', 'degraded'] } } }) },
      '/schema': { get: answer(ANY) },
      '/mcp': { post: { requestBody: json(ANY), ...answer(ANY) } },
    },
  };
}

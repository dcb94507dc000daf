import { type INestApplication, RequestMethod } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import { type ErrorCode, errorCatalogue } from '@palestra/protocol';
import { VERSION } from '@palestra/protocol/version';
import { z } from 'zod';
import { PUBLIC_ROUTE } from './public.decorator.ts';
import { API_DESCRIPTION, type ApiDescription } from './api.decorator.ts';

/** A route of the document. Nest's routes are discovered; other modules pass theirs. */
export interface DocumentedRoute {
  method: string;
  /** Fastify's notation: `/v1/runs/:id`. */
  path: string;
  public: boolean;
  tag: string;
  description: ApiDescription;
}

/** Error codes of any route, by sender: the router, the guard, the server. */
const COMMON: ErrorCode[] = [
  'invalid_request',
  'route_not_found',
  'method_not_allowed',
  'internal_error',
  'database_unavailable',
  'shutting_down',
  'rate_limited',
];
/** Statuses of `invalid_request` besides its own, for requests that do not arrive: too slow, or with too large headers. */
const NOT_ARRIVED = [408, 431];
const GUARDED: ErrorCode[] = ['unauthorized', 'key_revoked', 'key_expired', 'scope_missing'];

/** The ways to send a key that apps/api/src/platform/http/credentials.ts reads. */
const securitySchemes = {
  apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
  bearer: { type: 'http', scheme: 'bearer' },
  basic: { type: 'http', scheme: 'basic', description: 'The password is the key.' },
};
const KEY = Object.keys(securitySchemes).map((scheme) => ({ [scheme]: [] }));

const errorSchema = {
  type: 'object',
  required: ['statusCode', 'code', 'message', 'detail'],
  properties: {
    statusCode: { type: 'integer' },
    code: { type: 'string', enum: Object.keys(errorCatalogue) },
    message: { type: 'string' },
    detail: { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'object' } }] },
    id: { type: 'string', description: 'Of an internal error: the id to look for in the log.' },
  },
};

/**
 * Builds the OpenAPI 3.1 document from the schemas that validate the requests. It is deterministic: CI compares it with docs/openapi.json.
 */
export function buildOpenApi(app: INestApplication, otherRoutes: readonly DocumentedRoute[]): object {
  const paths: Record<string, Record<string, unknown>> = {};
  const shared: Record<string, object> = {};
  const routes = [...nestRoutes(app), ...otherRoutes].toSorted((a, b) => (a.path + a.method < b.path + b.method ? -1 : 1));
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}').replace('*', '{path}');
    (paths[path] ??= {})[route.method.toLowerCase()] = operation(route, shared);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Palestra',
      version: VERSION,
      description: 'Hosted reinforcement-learning environments, sessions and rollouts.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    paths,
    security: KEY,
    components: { schemas: { Error: errorSchema }, responses: shared, securitySchemes },
  };
}

function nestRoutes(app: INestApplication): DocumentedRoute[] {
  return app
    .get(DiscoveryService)
    .getControllers()
    .flatMap(({ metatype, name }) => {
      const prototype = (metatype as { prototype: object }).prototype;
      const prefix = String(Reflect.getMetadata('path', metatype as object) ?? '');
      return Object.getOwnPropertyNames(prototype).flatMap((key) => {
        const handler = Object.getOwnPropertyDescriptor(prototype, key)?.value as object | undefined;
        const method = typeof handler === 'function' ? (Reflect.getMetadata('method', handler) as RequestMethod | undefined) : undefined;
        const description = handler && (Reflect.getMetadata(API_DESCRIPTION, handler) as ApiDescription | undefined);
        if (method === undefined || !description || !handler) return [];
        const isPublic = Boolean(Reflect.getMetadata(PUBLIC_ROUTE, handler) ?? Reflect.getMetadata(PUBLIC_ROUTE, metatype as object));
        const suffixes = [Reflect.getMetadata('path', handler) as string | string[]].flat();
        return suffixes.map((suffix) => ({
          method: RequestMethod[method],
          path: joinPath(prefix, suffix),
          public: isPublic,
          tag: String(name).replace(/Controller$/, ''),
          description,
        }));
      });
    });
}

const joinPath = (...parts: string[]): string =>
  `/${parts
    // Only one slash: the second of '//:name' is an empty segment.
    .map((part) => part.replace(/^\//, '').replace(/\/+$/, ''))
    .filter(Boolean)
    .join('/')}`;

/** Adds the error responses of the route to `shared`. */
function operation({ method, path, description, public: isPublic, tag }: DocumentedRoute, shared: Record<string, object>): object {
  const errors = [
    ...COMMON,
    ...GUARDED,
    ...(description.body || description.query ? (['invalid_body'] as const) : []),
    ...(method === 'GET' || method === 'DELETE' ? [] : (['invalid_json', 'body_too_large'] as const)),
    ...(description.errors ?? []),
  ];
  return {
    summary: description.summary,
    tags: [tag],
    operationId: `${method.toLowerCase()}${path.replaceAll(/[^A-Za-z0-9]+(\w?)/g, (_match, next: string) => next.toUpperCase())}`,
    ...(isPublic && { security: [{}, ...KEY] }),
    parameters: [...pathParameters(path), ...parameters('query', description.query), ...parameters('header', description.headers)],
    ...(description.body || description.bodyFile ? { requestBody: { required: true, content: bodyOf(description) } } : {}),
    responses: { ...okResponses(description), ...errorResponses(errors, description, shared) },
  };
}

const bodyOf = ({ body, bodyFile }: ApiDescription): Record<string, object> => ({
  ...(body && { 'application/json': { schema: jsonSchema(body, 'input') } }),
  ...(bodyFile !== undefined && { [bodyFile]: { schema: { type: 'string', contentMediaType: bodyFile } } }),
});

function okResponses(description: ApiDescription): Record<string, object> {
  const content = contentOf(description);
  const events = description.stream === undefined ? '' : ` Server-sent events: ${Object.keys(description.stream).join(', ')}.`;
  const isRanged = description.errors?.includes('range_not_satisfiable');
  return {
    [description.status ?? 200]: description.empty ? { description: 'OK.' } : { description: `OK.${events}`, content },
    ...(description.accepted && { 202: { description: description.accepted } }),
    ...(isRanged && { 206: { description: 'The bytes of the header Range.', content } }),
  };
}

/** `x-events`: the schema of the data of each event, which is text for the type `string` and otherwise JSON. */
function contentOf({ response, stream, text, file, lines }: ApiDescription): Record<string, object> {
  if (file) return { '*/*': { schema: {} } };
  if (lines) return { 'application/x-ndjson': { schema: { type: 'string' }, 'x-lines': jsonSchema(lines, 'output') } };
  if (text) return { 'text/plain': { schema: { type: 'string' } } };
  const events = Object.fromEntries(Object.entries(stream ?? {}).map(([event, schema]) => [event, jsonSchema(schema, 'output')]));
  return {
    ...((response !== undefined || stream === undefined) && {
      'application/json': { schema: response ? jsonSchema(response, 'output') : {} },
    }),
    ...(stream && { 'text/event-stream': { schema: { type: 'string' }, 'x-events': events } }),
  };
}

/** Most routes have the same errors: each status with its codes is one component, which the routes name. */
function errorResponses(
  codes: readonly ErrorCode[],
  { rpc, errorsAs = {} }: ApiDescription,
  shared: Record<string, object>,
): Record<string, object> {
  const byStatus: Record<string, string[]> = {};
  for (const code of new Set(codes)) (byStatus[errorCatalogue[code].status] ??= []).push(code);
  for (const status of NOT_ARRIVED) byStatus[status] = ['invalid_request'];
  for (const [status, names] of Object.entries(errorsAs)) (byStatus[status] ??= []).push(...names);
  const described = [
    ...Object.entries(byStatus).map(([status, names]) => [status, names.toSorted().join(', ')] as const),
    ...Object.entries(rpc?.more ?? {}),
  ];
  return Object.fromEntries(
    described.map(([status, description]) => {
      const response = { description, content: { 'application/json': { schema: errorSchemaOf(Number(status), rpc) } } };
      if (rpc !== undefined) return [status, response];
      const name = `${status}.${description.replaceAll(', ', '.')}`;
      shared[name] = response;
      return [status, { $ref: `#/components/responses/${name}` }];
    }),
  );
}

/** Errors before and behind the routes of JSON-RPC have the common form. */
function errorSchemaOf(status: number, rpc: ApiDescription['rpc']): object {
  const common = { $ref: '#/components/schemas/Error' };
  if (rpc === undefined) return common;
  const schema = jsonSchema(rpc.error, 'output');
  return status >= 500 || NOT_ARRIVED.includes(status) ? { anyOf: [schema, common] } : schema;
}

const pathParameters = (path: string): object[] =>
  [...path.matchAll(/:(\w+)|\*/g)].map(([, name]) => ({ name: name ?? 'path', in: 'path', required: true, schema: { type: 'string' } }));

function parameters(place: 'query' | 'header', described: z.ZodObject | undefined): object[] {
  if (!described) return [];
  const schema = jsonSchema(described, 'input') as { properties?: Record<string, object>; required?: string[] };
  return Object.entries(schema.properties ?? {}).map(([name, property]) => ({
    name,
    in: place,
    required: schema.required?.includes(name) ?? false,
    schema: property,
  }));
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return rest;
}

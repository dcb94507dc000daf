import { MAX_ANSWER_BYTES } from '@palestra/hosting';
import { splitCredentials } from '@palestra/kit';
import { readBoundedText } from '@palestra/kit';
import { isObject } from '@palestra/protocol';
import { type Criterion, type Report, reportOf } from './criteria.ts';

/** The response of a request, or why there was none (`problem`). */
type Answer = { status: number; body: unknown; problem?: undefined } | { problem: string };

const MODE_ROUTES = ['/reset', '/step', '/state'] as const;

/**
 * Checks a running OpenEnv server against the six criteria of `openenv validate --url` (docs/reference/openenv.md#validation-command). A path
 * prefix applies to every request, user name and password become Basic credentials, and a missing scheme is `http://`.
 */
export async function validateUrl(text: string, timeoutMs: number, signal: AbortSignal): Promise<Report> {
  const target = baseUrl(text);
  const get = (path: string) => send(target, path, timeoutMs, signal);
  const [openapi, health, metadata, schema, mcp] = await Promise.all([
    get('/openapi.json'),
    get('/health'),
    get('/metadata'),
    get('/schema'),
    send(target, '/mcp', timeoutMs, signal, '{}'),
  ]);
  const version = textAt(fieldOf(bodyOf(openapi), 'info'), 'version');
  const mode = modeOf(openapi);
  const criteria = [
    openapiCriterion(openapi, version),
    healthCriterion(health),
    metadataCriterion(metadata),
    schemaCriterion(schema),
    mcpCriterion(mcp),
    mode.criterion,
  ];
  return reportOf(
    {
      target,
      validation_type: 'running_environment',
      standard_version: version ?? 'unknown',
      standard_profile: version?.startsWith('1.') ? 'openenv-http/1.x' : 'openenv-http/unknown',
      mode: mode.name,
    },
    criteria,
  );
}

/** The URL without trailing slashes, with a scheme. */
export function baseUrl(text: string): string {
  const trimmed = text.trim().replace(/\/+$/, '');
  return /^https?:\/\//i.test(trimmed) ? trimmed : `http://${trimmed}`;
}

async function send(base: string, path: string, timeoutMs: number, signal: AbortSignal, body?: string): Promise<Answer> {
  try {
    const { url, headers } = splitCredentials(base + path);
    const answer = await fetch(url, {
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      ...(body === undefined ? {} : { method: 'POST', body }),
    });
    const text = await readBoundedText(answer.body, MAX_ANSWER_BYTES);
    return { status: answer.status, body: jsonOf(text) };
  } catch (error) {
    signal.throwIfAborted();
    const { cause, message } = error as Error;
    return { problem: `Request failed: ${cause instanceof Error && cause.message ? cause.message : message}` };
  }
}

function openapiCriterion(answer: Answer, version: string | null): Criterion {
  const about = {
    id: 'openapi_version_available',
    description: 'GET /openapi.json returns OpenAPI info.version',
    required: true,
    expected: { status_code: 200, 'info.version': 'string' },
  };
  if (answer.problem !== undefined) return { ...about, passed: false, details: answer.problem };
  const { status, body } = answer;
  if (status === 200 && version !== null) return { ...about, passed: true, actual: { status_code: status, 'info.version': version } };
  return {
    ...about,
    passed: false,
    details: 'Response missing required OpenAPI info.version field',
    actual: { status_code: status, body_type: pythonType(body) },
  };
}

function healthCriterion(answer: Answer): Criterion {
  const about = {
    id: 'health_endpoint',
    description: 'GET /health returns healthy status',
    required: true,
    expected: { status_code: 200, status: 'healthy' },
  };
  return evaluate(about, answer, (status, body) => {
    const health = fieldOf(body, 'status');
    return { passed: status === 200 && health === 'healthy', actual: { status_code: status, status: health } };
  });
}

function metadataCriterion(answer: Answer): Criterion {
  const about = {
    id: 'metadata_endpoint',
    description: 'GET /metadata returns name and description',
    required: true,
    expected: { status_code: 200, fields: ['name', 'description'] },
  };
  return evaluate(about, answer, (status, body) => {
    const [name, description] = [fieldOf(body, 'name'), fieldOf(body, 'description')];
    const passed = status === 200 && typeof name === 'string' && typeof description === 'string';
    return { passed, actual: { status_code: status, name, description } };
  });
}

function schemaCriterion(answer: Answer): Criterion {
  const about = {
    id: 'schema_endpoint',
    description: 'GET /schema returns action, observation, and state schemas',
    required: true,
    expected: { status_code: 200, fields: ['action', 'observation', 'state'] },
  };
  return evaluate(about, answer, (status, body) => {
    const has = (key: string) => isObject(fieldOf(body, key));
    const actual = { status_code: status, has_action: has('action'), has_observation: has('observation'), has_state: has('state') };
    return { passed: status === 200 && actual.has_action && actual.has_observation && actual.has_state, actual };
  });
}

function mcpCriterion(answer: Answer): Criterion {
  const about = {
    id: 'mcp_endpoint',
    description: 'POST /mcp is reachable and returns JSON-RPC payload',
    required: true,
    expected: { status_code: 200, jsonrpc: '2.0' },
  };
  return evaluate(about, answer, (status, body) => {
    const jsonrpc = fieldOf(body, 'jsonrpc');
    return { passed: status === 200 && jsonrpc === '2.0', actual: { status_code: status, jsonrpc } };
  });
}

/** A server has all three routes of a simulation, or none of them. */
function modeOf(openapi: Answer): { name: string; criterion: Criterion } {
  const about = {
    id: 'mode_endpoint_consistency',
    description: 'OpenAPI endpoint set matches OpenEnv mode contract',
    required: true,
  };
  const paths = fieldOf(bodyOf(openapi), 'paths');
  if (!isObject(paths) || Object.keys(paths).length === 0) {
    const details = 'Cannot determine mode without OpenAPI paths';
    const [expected, actual] = [{ 'openapi.paths': 'present' }, { 'openapi.paths': 'missing' }];
    return { name: 'unknown', criterion: { ...about, passed: false, details, expected, actual } };
  }
  const actual = Object.fromEntries(MODE_ROUTES.map((route) => [route, Object.hasOwn(paths, route)]));
  // `/reset` decides which mode the server claims.
  const isSimulation = actual['/reset'] === true;
  const expected = Object.fromEntries(MODE_ROUTES.map((route) => [route, isSimulation]));
  const passed = MODE_ROUTES.every((route) => actual[route] === isSimulation);
  return { name: isSimulation ? 'simulation' : 'production', criterion: { ...about, passed, expected, actual } };
}

function evaluate(
  about: Omit<Criterion, 'passed'>,
  answer: Answer,
  check: (status: number, body: unknown) => { passed: boolean; actual: unknown },
): Criterion {
  if (answer.problem !== undefined) return { ...about, passed: false, details: answer.problem };
  return { ...about, ...check(answer.status, answer.body) };
}

const fieldOf = (body: unknown, key: string): unknown => (isObject(body) ? (body[key] ?? null) : null);
const bodyOf = (answer: Answer): unknown => (answer.problem === undefined && answer.status === 200 ? answer.body : null);

function textAt(value: unknown, key: string): string | null {
  const found = fieldOf(value, key);
  return typeof found === 'string' ? found : null;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The Python type name that OpenEnv's report uses. */
function pythonType(body: unknown): string {
  if (body === undefined || body === null) return 'NoneType';
  if (Array.isArray(body)) return 'list';
  return { object: 'dict', string: 'str', number: 'float', boolean: 'bool' }[typeof body as string] ?? typeof body;
}

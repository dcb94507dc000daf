import { beforeAll, describe, expect, test } from 'vitest';
import { defineEnvironment, serve, tool } from '@palestra/environment-kit';
import { sharedPalestra } from '../support/palestra.ts';

/**
 * Bad input, black box: the code, the status and the text of the catalogue for each. Aims at `PALESTRA_ACCEPTANCE_URL` (with
 * `PALESTRA_ACCEPTANCE_KEY`), else at the built service that test files share.
 */
interface Target {
  url: string;
  apiKey: string;
  namespace: string;
}
let target: Target;

async function remoteTarget(url: string): Promise<Target> {
  const apiKey = process.env['PALESTRA_ACCEPTANCE_KEY'] ?? '';
  const answer = await fetch(`${url}/v1/namespace/current?type=user`, { headers: { 'x-api-key': apiKey } });
  const { name } = (await answer.json()) as { name: string };
  return { url, apiKey, namespace: name };
}

beforeAll(async () => {
  const url = process.env['PALESTRA_ACCEPTANCE_URL'];
  target = url ? await remoteTarget(url) : await sharedPalestra();
});

interface Answer {
  status: number;
  text: string;
  body: { statusCode?: number; code?: string; message?: string; detail?: unknown };
}

async function ask(method: string, route: string, options: { headers?: Record<string, string>; body?: unknown } = {}): Promise<Answer> {
  const { headers = {}, body } = options;
  const answer = await fetch(`${target.url}${route}`, {
    method,
    headers: {
      'x-api-key': target.apiKey,
      'x-deployment': 'palestra/echo',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    body: body === undefined ? null : typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await answer.text();
  const isJson = answer.headers.get('content-type')?.includes('json') ?? false;
  return { status: answer.status, text, body: isJson ? (JSON.parse(text) as Answer['body']) : {} };
}

const sid = () => ({ 'x-session-id': crypto.randomUUID() });
async function openSession(): Promise<Record<string, string>> {
  const headers = sid();
  const created = await ask('POST', '/create', { headers, body: { split: 'train', index: 0 } });
  expect(created.status, created.text).toBe(200);
  return headers;
}

function expectRefusal(answer: Answer, status: number, code: string, detail: string | RegExp): void {
  expect({ status: answer.status, code: answer.body.code }, answer.text).toEqual({ status, code });
  expect(answer.body.statusCode).toBe(status);
  if (typeof detail === 'string') expect(answer.body).toMatchObject({ detail, message: detail });
  else expect(JSON.stringify(answer.body.detail)).toMatch(detail);
}

describe('refusals of the session API', () => {
  test('a missing key, a wrong key', async () => {
    const text = 'Missing or unknown API key. Send it as the X-API-Key header (OPENREWARD_API_KEY).';
    for (const key of ['', 'or_nobody_has_this_key']) {
      expectRefusal(await ask('POST', '/create_session', { headers: { 'x-api-key': key }, body: {} }), 401, 'unauthorized', text);
      expectRefusal(await ask('GET', '/v1/runs', { headers: { 'x-api-key': key } }), 401, 'unauthorized', text);
      expectRefusal(await ask('POST', '/v1/rollouts', { headers: { 'x-api-key': key }, body: { events: [] } }), 401, 'unauthorized', text);
    }
  });

  test('an unknown deployment', async () => {
    for (const deployment of ['nobody/nothing', 'nothing', `${target.namespace}/nothing`]) {
      const answer = await ask('POST', '/create_session', { headers: { 'x-deployment': deployment }, body: {} });
      expect(answer.status, answer.text).toBe(404);
      expect(answer.body).toMatchObject({ code: 'deployment_not_found', detail: expect.stringContaining('Deployment not found.') });
    }
  });

  test('an unknown environment, split or index', async () => {
    expectRefusal(await ask('POST', '/tasks', { body: { split: 'zzz' } }), 400, 'invalid_split', 'Invalid split');
    expectRefusal(await ask('POST', '/task', { body: { split: 'train', index: 1000 } }), 400, 'invalid_index', 'Invalid index');
    expectRefusal(
      await ask('POST', '/create', { headers: sid(), body: { split: 'zzz', index: 0 } }),
      400,
      'invalid_split',
      'Invalid split',
    );
    expectRefusal(
      await ask('POST', '/create', { headers: sid(), body: { split: 'train', index: 10_000 } }),
      400,
      'invalid_index',
      'Invalid index',
    );
    expectRefusal(
      await ask('POST', '/create', { headers: sid(), body: { split: 'train', index: 0, env_name: 'zzz' } }),
      404,
      'unknown_variant',
      /unknown environment 'zzz'/,
    );
  });

  test('a body of the wrong shape, or invalid JSON', async () => {
    for (const body of ['{bad json', '', '{"split": "train"']) {
      const answer = await ask('POST', '/task', { body });
      expect(answer.status, answer.text).toBe(422);
    }
    expectRefusal(await ask('POST', '/task', { body: '{bad json' }), 422, 'invalid_json', /json_invalid/);
    expectRefusal(await ask('POST', '/task', { body: { split: 'train' } }), 422, 'invalid_body', /"loc":\["body","index"\]/);
    expectRefusal(
      await ask('POST', '/create', { headers: sid(), body: {} }),
      422,
      'invalid_body',
      /Provide either task_spec or both split and index/,
    );
    expectRefusal(
      await ask('POST', '/create', { headers: sid(), body: { split: 'train', index: 0, secrets: {} } }),
      422,
      'invalid_body',
      /extra_forbidden/,
    );
  });

  test('a missing session, an unknown one, a second create, a deleted one', async () => {
    expectRefusal(await ask('POST', '/ping'), 400, 'session_id_required', 'X-Session-ID header is required');
    expectRefusal(await ask('POST', '/ping', { headers: sid() }), 404, 'session_not_found', 'Active environment not found');
    const session = await openSession();
    expectRefusal(
      await ask('POST', '/create', { headers: session, body: { split: 'train', index: 0 } }),
      400,
      'session_exists',
      'Session already exists',
    );
    expect((await ask('POST', '/delete', { headers: session })).status).toBe(200);
    expectRefusal(await ask('GET', '/prompt', { headers: session }), 410, 'session_deleted', 'Session deleted');
    expectRefusal(await ask('POST', '/ping', { headers: session }), 410, 'session_deleted', 'Session deleted');
  });

  test('an unknown tool and wrong arguments are errors of the model: ok:false, and the session continues', async () => {
    const session = await openSession();
    const call = async (name: string, input: unknown) => (await ask('POST', '/call', { headers: session, body: { name, input } })).text;
    expect(await call('nope', {})).toContain('"reason":"not_found"');
    expect(await call('echo', {})).toContain('"reason":"input_validation"');
    expect(await call('echo', { text: 5 })).toContain('"reason":"input_validation"');
    expect(await call('echo', { text: 'still here' })).toContain('"still here"');
    expectRefusal(
      await ask('POST', '/call', { headers: session, body: { name: 'echo', input: [1] } }),
      422,
      'invalid_body',
      /"loc":\["body","input"\]/,
    );
    await ask('POST', '/delete', { headers: session });
  });

  test('secrets that are not base64 of JSON, an unknown toolset', async () => {
    expectRefusal(
      await ask('POST', '/create_session', { headers: { 'x-secrets': '!!!' }, body: {} }),
      400,
      'secrets_invalid',
      'The X-Secrets header is not a base64-encoded JSON object.',
    );
    const overrides = await ask('POST', '/create_session', { body: { env: { PATH: '/tmp' } } });
    expectRefusal(overrides, 400, 'override_not_allowed', /override/);
    const answer = await ask('POST', '/create', { headers: sid(), body: { split: 'train', index: 0, toolset_name: 'zzz' } });
    expectRefusal(answer, 400, 'unknown_toolset', /toolset/);
  });

  test('an unreachable upstream: nothing ran, and the client may retry', async () => {
    const name = `dead-${crypto.randomUUID().slice(0, 8)}`;
    // It has to live to be added: nobody can register a server that does not answer.
    const upstream = await serve(
      [
        defineEnvironment({
          name: 'mortal',
          splits: ['train'],
          tasks: () => [{}],
          prompt: () => '',
          tools: { noop: tool({ description: '', run: () => '' }) },
        }),
      ],
      { port: 0 },
    );
    const source = { kind: 'remote', url: upstream.url };
    const added = await ask('POST', '/v1/environments', {
      body: { name, namespace: target.namespace, description: 'Nobody listens', isPrivate: true, source },
    });
    expect(added.status, added.text).toBeLessThan(300);
    await upstream.close();
    const answer = await ask('POST', '/create', {
      headers: { ...sid(), 'x-deployment': `${target.namespace}/${name}` },
      body: { split: 'train', index: 0 },
    });
    expectRefusal(answer, 503, 'backend_unreachable', /could not be reached/);
  });

  test('an unknown route, a wrong method', async () => {
    const unknown = await ask('GET', '/v1/nothing-here');
    expectRefusal(unknown, 404, 'route_not_found', /Not Found|Cannot/);
    expectRefusal(await ask('GET', '/ping'), 405, 'method_not_allowed', 'Method Not Allowed');
  });
});

describe('refusals of /v1', () => {
  test('a run, a rollout, an environment that does not exist', async () => {
    const id = crypto.randomUUID();
    expectRefusal(await ask('GET', `/v1/runs/${id}`), 404, 'run_not_found', 'No such run.');
    expectRefusal(await ask('GET', `/v1/rollouts/${id}`), 404, 'rollout_not_found', 'No such rollout.');
    expectRefusal(
      await ask('GET', '/v1/environments/nobody/nothing'),
      404,
      'environment_not_found',
      'The environment does not exist, or it is private to another organisation.',
    );
    expectRefusal(await ask('GET', '/v1/runs/not-a-uuid'), 404, 'run_not_found', 'No such run.');
  });

  test('a rollout body with invalid JSON or another shape stores nothing', async () => {
    expectRefusal(await ask('POST', '/v1/rollouts', { body: '{"events": [' }), 422, 'invalid_json', /./);
    const answer = await ask('POST', '/v1/rollouts', { body: { events: [{ eventType: 'message' }] } });
    expectRefusal(answer, 422, 'invalid_body', /./);
  });

  test('a revoked key is refused at once', async () => {
    const created = await ask('POST', '/v1/keys', { body: { name: 'short-lived', scopes: ['sessions', 'rollouts'] } });
    expect(created.status, created.text).toBeLessThan(300);
    const { id, key } = created.body as { id: string; key: string };
    const headers = { 'x-api-key': key };
    expect((await ask('POST', '/create_session', { headers, body: {} })).status).toBe(200);
    const revoked = await ask('DELETE', `/v1/keys/${id}`);
    expect(revoked.status, revoked.text).toBeLessThan(300);
    const answer = await ask('POST', '/create_session', { headers, body: {} });
    expectRefusal(answer, 401, 'key_revoked', 'This API key was revoked. Create another one under /keys.');
  });
});

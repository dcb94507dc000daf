import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Client } from '../integration/protocols/openenv.world.ts';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { type OpenEnvServerProcess, startOpenEnv, startScaffold } from './support/openenv-server.ts';
import { recording } from './support/python.ts';

/** What real servers answered real clients, asked again through Palestra. */
interface Line {
  upstream: string;
  seq: number;
  kind: 'http' | 'ws';
  method: string;
  path: string;
  body: string;
  status: number;
  response: string;
  reduced?: boolean;
  conn: number;
  event: 'open' | 'send' | 'recv' | 'client_close' | 'server_close';
  frame?: string;
  binary?: boolean;
}

/** The servers that are hosted, by the names of the recordings. */
const python = 'PALESTRA_PYTHON_OE_0_10_0';
const starts: Record<string, () => Promise<OpenEnvServerProcess>> = {
  guess: () => startOpenEnv({ python, app: 'guess_app' }),
  tools: () => startOpenEnv({ python, app: 'tools_app' }),
  toolsprod: () => startOpenEnv({ python, app: 'tools_app', env: { OPENENV_MODE: 'production' } }),
  scaffold: () => startScaffold({ python }),
};
let palestra: SharedPalestra;
let servers: OpenEnvServerProcess[];

beforeAll(async () => {
  palestra = await sharedPalestra();
  servers = await Promise.all(Object.values(starts).map((start) => start()));
  for (const [index, name] of Object.keys(starts).entries()) {
    const source = { kind: 'openenv', url: servers[index]!.url };
    const answer = await fetch(`${palestra.url}/v1/environments`, {
      method: 'POST',
      headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
      body: JSON.stringify({ name, namespace: palestra.namespace, description: '', isPrivate: false, source }),
    });
    if (!answer.ok) throw new Error(`POST /v1/environments: ${answer.status} ${await answer.text()}`);
  }
}, 240_000);
afterAll(async () => {
  await Promise.all((servers ?? []).map((server) => server.stop()));
});

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/** Recorded ids, and what they are now. */
class Ids {
  readonly #live = new Map<string, string>();
  into(text: string): string {
    return text.replaceAll(UUID, (id) => this.#live.get(id) ?? id);
  }
  /** The recorded text with the ids of the live one. */
  learn(recorded: string, live: string): string {
    const now = live.match(UUID) ?? [];
    (recorded.match(UUID) ?? []).forEach((id, index) => now[index] !== undefined && !this.#live.has(id) && this.#live.set(id, now[index]));
    return this.into(recorded);
  }
}

const parsed = (text: string): unknown => {
  try {
    // Versions of pydantic, and their documentation, differ.
    return JSON.parse(text.replaceAll(/errors\.pydantic\.dev\/[\d.]+\//g, 'errors.pydantic.dev/V/'));
  } catch {
    return text;
  }
};

const lines = (file: string): Line[] =>
  readFileSync(recording(file), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
    .filter(({ upstream }) => Object.hasOwn(starts, upstream));

/** Sends one recorded request again. */
async function repeat(line: Line, ids: Ids): Promise<void> {
  const answer = await fetch(`${palestra.url}/openenv/${palestra.namespace}/${line.upstream}${line.path}`, {
    method: line.method,
    headers: { 'x-api-key': palestra.apiKey, ...(line.body && { 'content-type': 'application/json' }) },
    ...(line.body && { body: ids.into(line.body) }),
  });
  const text = await answer.text();
  const where = `${line.upstream} ${line.seq} ${line.method} ${line.path} ${line.body}`;
  expect(answer.status, where).toBe(line.status);
  if (line.reduced || line.path === '/openapi.json') {
    expect(Object.keys((parsed(text) as any).paths).toSorted(), where).toEqual(
      Object.keys((parsed(line.response) as any).paths).toSorted(),
    );
  } else if (answer.status === 405 || (answer.status === 404 && line.path === '/')) {
    expect(parsed(text), where).toMatchObject(parsed(line.response) as object);
  } else {
    expect(parsed(text), where).toEqual(parsed(ids.learn(line.response, text)));
  }
}

/** Connections that differ on purpose, by file, with the reason. */
const OURS: Record<string, Record<string, string>> = {
  'openenv-0.10-sockets': {
    'tools 10':
      'others attach to the session of a plain socket and close it over HTTP: Palestra refuses both (docs/reference/openenv.md#attached-sessions)',
    'tools 11': 'attaches to that session',
  },
  'openenv-0.10-clients': {},
};

async function replay(file: string): Promise<number> {
  const ids = new Ids();
  const clients = new Map<string, Client>();
  const ended = new Set<string>();
  const tangled = new Set<string>();
  let count = 0;
  for (const line of lines(file)) {
    if (line.kind === 'http') {
      const ofTangled = (line.body?.match(UUID) ?? []).some((id) => tangled.has(id));
      if (!ofTangled) {
        await repeat(line, ids);
        count += 1;
      }
      continue;
    }
    const conn = `${line.upstream} ${line.conn}`;
    if (OURS[file]?.[conn] !== undefined) {
      for (const id of line.frame?.match(UUID) ?? []) tangled.add(id);
      continue;
    }
    if (ended.has(conn)) continue;
    const where = `${conn} ${line.seq} ${line.event} ${line.frame ?? line.path ?? ''}`;
    count += 1;
    const client = clients.get(conn)!;
    switch (line.event) {
      case 'open': {
        const url = `${palestra.url}/openenv/${palestra.namespace}/${line.upstream}${ids.into(line.path)}`;
        clients.set(conn, await Client.open(url, { 'x-api-key': palestra.apiKey }));
        break;
      }
      case 'send':
        client.send(line.binary ? Buffer.from('{}') : ids.into(line.frame!));
        break;
      case 'recv': {
        const live = JSON.stringify(await client.next());
        if (line.frame!.includes('Unable to serialize unknown type') && line.frame!.includes('SESSION_ERROR')) {
          // A refused action: ours says so properly, and the episode goes on.
          expect(parsed(live), where).toMatchObject({ type: 'error', data: { code: 'VALIDATION_ERROR', message: 'Invalid message' } });
          ended.add(conn);
          break;
        }
        expect(parsed(live), where).toEqual(parsed(ids.learn(line.frame!, live)));
        break;
      }
      case 'client_close':
        await client.close();
        break;
      case 'server_close':
        expect(await client.ended(), where).toEqual({ code: 1000, reason: '' });
        break;
    }
  }
  for (const client of clients.values()) client.destroy();
  return count;
}

test.each([
  ['openenv-0.10-http', 60],
  ['openenv-0.10-sockets', 70],
  ['openenv-0.10-clients', 130],
])('%s', async (file, atLeast) => {
  expect(await replay(file)).toBeGreaterThanOrEqual(atLeast);
});

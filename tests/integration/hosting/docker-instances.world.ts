import { mkdirSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import path from 'node:path';
import type { Artifact, BuildRequest, DockerProvider, InstanceSpec, LogLine, RunningInstance } from '@palestra/hosting';
import { newUuid, splitCredentials } from '@palestra/kit';
import { expect } from 'vitest';
import type { TestEngine } from './docker-engine.world.ts';

/** The program of all instances here: what it does is in its first argument and in requests. */
export const SERVER = `
import http from 'node:http';
import net from 'node:net';
import fs from 'node:fs';
import os from 'node:os';
import dns from 'node:dns/promises';
const port = Number(process.env.PORT);
const connect = (host, port) => new Promise((resolve) => {
  const socket = net.connect({ host, port, timeout: 1500 });
  socket.on('connect', () => resolve('connected')).on('timeout', () => resolve('timeout')).on('error', (error) => resolve(error.code));
});
const tryTo = async (work) => { try { return await work(); } catch (error) { return error.code ?? error.message; } };
const actions = {
  echo: (body) => body,
  connect: ({ host, port }) => connect(host, port),
  resolve: ({ host }) => tryTo(() => dns.lookup(host)),
  fetch: ({ url, proxy }) => tryTo(() => new Promise((resolve, reject) => {
    const target = new URL(proxy);
    http.get({ host: target.hostname, port: target.port, path: url }, (answer) => resolve(answer.statusCode)).on('error', reject);
  })),
  env: () => process.env,
  interfaces: () => os.networkInterfaces(),
  self: () => ({ uid: process.getuid(), gid: process.getgid(), status: fs.readFileSync('/proc/self/status', 'utf8') }),
  read: ({ file }) => tryTo(() => fs.readFileSync(file, 'utf8')),
  write: ({ file, megabytes = 0 }) => tryTo(() => { fs.writeFileSync(file, Buffer.alloc(Math.max(1, megabytes * 2 ** 20))); return 'written'; }),
  say: ({ text, times = 1 }) => { for (let i = 0; i < times; i += 1) console.log(text.replace('#', i)); return times; },
  write_hex: ({ bytes }) => new Promise((written) => process.stdout.write(Buffer.from(bytes, 'hex'), () => written(bytes))),
  eat: async () => { const all = []; for (;;) { all.push(Buffer.alloc(2 ** 24, 1)); await new Promise((next) => setImmediate(next)); } },
  exit: ({ code }) => { setTimeout(() => process.exit(code), 20); return code; },
};
console.log('listening soon');
console.error('a complaint');
http.createServer((request, response) => {
  let body = '';
  request.on('data', (chunk) => (body += chunk)).on('end', async () => {
    const result = await actions[request.url.slice(1)](body ? JSON.parse(body) : {});
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(result));
  });
}).listen(port, '0.0.0.0', () => console.log('listening'));
process.on('SIGTERM', () => { console.log('ending'); process.exit(0); });
`;

/** Much disk, because what others write to it during a build counts too. */
export const LIMITS: BuildRequest['limits'] = { seconds: 60, memoryMb: 1_024, maxBytes: 2 ** 33, network: false };
export const soon = () => AbortSignal.timeout(60_000);

/** A folder with files, by their names. */
export function folderWith(engine: TestEngine, files: Record<string, string>): string {
  const folder = path.join(engine.folder, newUuid());
  mkdirSync(folder);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), text);
  }
  return folder;
}

/** An image of `SERVER`. */
export function buildServer(engine: TestEngine, provider: DockerProvider): Promise<Artifact> {
  const server = { command: 'node', args: ['server.mjs'], cwd: '.', variables: {} };
  const folder = folderWith(engine, { 'server.mjs': SERVER });
  const request = {
    deployId: newUuid(),
    sourceDigest: `sha256:${engine.installation}`,
    source: { kind: 'folder', folder, plan: { kind: 'node', install: false, server } },
    buildArguments: {},
    limits: LIMITS,
  } as const;
  return provider.build(request, () => {}, soon());
}

export const specOf = (artifact: Artifact, given: Partial<InstanceSpec> = {}): InstanceSpec => ({
  id: newUuid(),
  versionId: 'version-1',
  environment: 'acme/echo',
  artifact,
  resources: { cpus: 1, memoryMb: 128, pids: 64, diskMb: 8, gpus: 0 },
  egress: { kind: 'none' },
  isolation: 'container',
  variables: {},
  secrets: {},
  ...given,
});

export async function call<T>({ endpoint }: RunningInstance, action: string, body: object = {}): Promise<T> {
  const { url, headers } = splitCredentials(endpoint!);
  const answer = await fetch(new URL(action, url), { method: 'POST', headers, body: JSON.stringify(body), signal: soon() });
  return (await answer.json()) as T;
}

/** Runs it until it answers. */
export async function startInstance(provider: DockerProvider, spec: InstanceSpec): Promise<RunningInstance> {
  const instance = await provider.ensure(spec, soon());
  await expect.poll(() => call(instance, 'echo', { is: 'up' }).catch(() => null)).toEqual({ is: 'up' });
  return instance;
}

/** Up to the line with a text. */
export async function linesUntil(lines: AsyncIterable<LogLine>, last: string): Promise<LogLine[]> {
  const read: LogLine[] = [];
  for await (const line of lines) {
    read.push(line);
    if (line.text === last) break;
  }
  return read;
}

/** Removes all instances; throws if anything of them is left. */
export async function removeAll(engine: TestEngine, provider: DockerProvider): Promise<void> {
  for (const { id } of await provider.list(soon())) await provider.remove(id, 0, soon());
  const left = engine.leftovers();
  if (left.length > 0) throw new Error(`left behind: ${left.join(', ')}`);
}

export function connects(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host, port, timeout: 5_000 });
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
    socket.on('timeout', () => resolve(false)).on('connect', () => socket.destroy());
  });
}

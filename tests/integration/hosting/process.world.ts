import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Artifact, BuildRequest, InstanceSpec, LogLine, ProcessProvider, ServerCommand } from '@palestra/hosting';

/** Of the test files of this worker, which share this module: the first of them that ends removes it, and the next one makes it again. */
export const root = mkdtempSync(path.join(tmpdir(), 'palestra-process-'));

export function folderOf(files: Record<string, string>): string {
  mkdirSync(root, { recursive: true });
  const folder = mkdtempSync(path.join(root, 'source-'));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.join(folder, path.dirname(name)), { recursive: true });
    writeFileSync(path.join(folder, name), content);
  }
  return folder;
}

export const KIT_ENVIRONMENT = `
import { defineEnvironment, tool, z } from '@palestra/environment-kit';
console.log('loading the environment');
export default defineEnvironment({
  name: 'guess',
  splits: ['train'],
  tasks: () => [{ secret: 7 }],
  prompt: () => 'Guess.',
  tools: { guess: tool({ description: 'Guess.', input: z.strictObject({ number: z.int() }), run: () => ({ content: 'No', reward: 0 }) }) },
});
`;

/** A server in Node.js, without a build. \`body\` runs before it listens. */
export function artifactOf(body: string, more: Partial<ServerCommand> = {}): Extract<Artifact, { kind: 'folder' }> {
  const server = `
const http = require('node:http');
const listen = () => http.createServer((_, response) => response.end('{"status":"ok"}')).listen(Number(process.env.PORT), process.env.HOST);
${body}
`;
  const folder = folderOf({ 'server.cjs': server });
  const command = { command: 'node', args: ['server.cjs', '{port}'], cwd: '.', variables: {}, ...more };
  return { kind: 'folder', digest: `sha256:${path.basename(folder)}`, folder, server: command };
}

let count = 0;
export const specOf = (artifact: Artifact, more: Partial<InstanceSpec> = {}): InstanceSpec => ({
  id: `instance-${(count += 1)}`,
  versionId: 'version-1',
  environment: 'team/game',
  artifact,
  resources: { cpus: 1, memoryMb: 512, pids: 100, diskMb: 100, gpus: 0 },
  egress: { kind: 'open' },
  isolation: 'none',
  variables: {},
  secrets: {},
  ...more,
});

export const requestOf = (source: BuildRequest['source'], more: Partial<BuildRequest> = {}): BuildRequest => ({
  deployId: 'deploy-1',
  sourceDigest: `sha256:${'folder' in source ? path.basename(source.folder) : 'image'}`,
  source,
  buildArguments: {},
  limits: { seconds: 120, memoryMb: 1_024, maxBytes: 500_000_000, network: true },
  ...more,
});

/** The first answer of a server that starts. */
export async function answerOf(url: string): Promise<string> {
  for (;;) {
    const answer = await fetch(`${url}/health`).catch(() => null);
    if (answer !== null) return answer.text();
    await sleep(20);
  }
}

export async function linesOf(provider: ProcessProvider, id: string, until: (line: LogLine) => boolean, since: Date | null = null) {
  const stop = new AbortController();
  const lines: LogLine[] = [];
  for await (const line of provider.logs(id, since, stop.signal)) {
    lines.push(line);
    if (until(line)) break;
  }
  stop.abort();
  return lines;
}

/** Command lines of the processes whose environment has this text. */
export const processesOf = (text: string): string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && readProc(name, 'environ').includes(text))
    .map((name) => readProc(name, 'cmdline').replaceAll('\0', ' '))
    .filter((line) => line !== '');

function readProc(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

/** A build backend of Python without packages, whose code is \`body\`. */
export const backend = (body: string): Record<string, string> => ({
  'pyproject.toml':
    '[project]\nname = "my-env"\nversion = "1"\n[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
  'backend.py': `import os, sys, time, subprocess\ndef build_wheel(*_, **__):\n    ${body.replaceAll('\n', '\n    ')}\n`,
});

export const forget = () => rmSync(root, { recursive: true, force: true });
export const isThere = existsSync;

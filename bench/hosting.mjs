// Environments in containers: how long an author and a client wait, and what calls cost beside the same server by its URL.
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { dockerfileFolder, logDelays, pythonFolder } from './support/build-log.mjs';
import { wait } from './support/client.mjs';
import { findEngine, startEngine } from './support/container-engine.mjs';
import { atMost, median, shown } from './support/figures.mjs';
import { apiKey, discard, freePort, root, startPalestra, startServer, time } from './support/processes.mjs';
import { playRounds } from './support/rounds.mjs';

const sessions = 16;
const WARM = 10;
const ZERO_LIMIT_MS = 120_000;

const ECHO = `import { defineEnvironment, tool, z } from '@palestra/environment-kit';
const tasks = Array.from({ length: 1000 }, (_, id) => ({ id }));
export default defineEnvironment({
  name: 'echo', description: 'Says back what it is told.', splits: ['train'], tasks: () => tasks, deterministic: true,
  prompt: ({ task }) => \`Task \${task.id}\`,
  tools: { echo: tool({ description: 'Returns the text.', input: z.object({ text: z.string() }), run: ({ text }) => ({ content: text, reward: 0.1 }) }) },
});
`;

export async function benchHosting() {
  const command = findEngine();
  if (command === null) return [];
  const engine = await startEngine(command);
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-bench-hosting-'));
  const palestra = await startPalestra({ env: { ...engine.environment, PALESTRA_ALLOW_PRIVATE_UPSTREAMS: '1' } });
  const cli = cliOf(palestra);
  try {
    return [
      ...(await waits(palestra, cli, folder)),
      ...(await throughput(palestra, cli, folder)),
      ...(await logDelays(palestra, cli, dockerfileFolder(folder, engine.image), 'docker')),
      ...(await logDelaysOfProcesses(folder)),
    ];
  } finally {
    await discard(palestra);
    await engine.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const cliOf =
  ({ url }) =>
  (...args) =>
    time(process.execPath, [path.join(root, 'apps/cli/bin/palestra.cjs'), 'env', ...args], {
      PALESTRA_URL: url,
      PALESTRA_API_KEY: apiKey,
    });

async function logDelaysOfProcesses(folder) {
  const { source, path: PATH } = pythonFolder(folder);
  const palestra = await startPalestra({ env: { PALESTRA_HOSTING: 'process', PALESTRA_ALLOW_COMMANDS: '1', PATH } });
  try {
    return await logDelays(palestra, cliOf(palestra), source, 'process');
  } finally {
    await discard(palestra);
  }
}

async function waits(palestra, cli, folder) {
  await cli('init', 'guess', '--dir', folder);
  const source = path.join(folder, 'guess');
  const name = 'local/guess';
  const deploy = await cli('deploy', source, '--idle', '1');
  const first = await openSession(palestra, name);
  const warm = [];
  for (let number = 0; number < WARM; number += 1) warm.push(await openSession(palestra, name));
  await untilZero(cli, name);
  const wake = await openSession(palestra, name);
  const program = path.join(source, 'environment.ts');
  writeFileSync(program, readFileSync(program, 'utf8').replace('I think of', 'I thought of'));
  const second = await cli('deploy', source);
  const back = await cli('rollback', name);
  return [
    atMost(60, 'deploy of the scaffold until it is promoted, and its first session', deploy.seconds + first / 1000, 's'),
    shown('the deploy alone', deploy.seconds, 's'),
    shown('a second version', second.seconds, 's'),
    shown('the first session alone', first / 1000, 's'),
    atMost(1, 'warm start: create_session until the prompt, median', median(warm) / 1000, 's'),
    atMost(3, 'wake from zero until the prompt', wake / 1000, 's'),
    atMost(10, 'rollback by the CLI', back.seconds, 's'),
  ];
}

/** Milliseconds until a client has the prompt of a new session. */
async function openSession({ url }, name) {
  const headers = { 'x-api-key': apiKey, 'x-deployment': name, 'content-type': 'application/json' };
  const send = async (route, sid, body) => {
    const given = { ...headers, ...(sid && { 'x-session-id': sid }) };
    const answer = await fetch(url + route, { method: body === undefined ? 'GET' : 'POST', headers: given, body });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${route}: ${answer.status} ${text}`);
    return text;
  };
  const started = performance.now();
  const sid = /^data: (\S+)/m.exec(await send('/create_session', null, '{}'))[1];
  await send('/create', sid, JSON.stringify({ split: 'train', index: 0 }));
  await send('/guess/prompt', sid);
  const ms = performance.now() - started;
  for (const route of ['/delete', '/delete_session']) await send(route, sid, '');
  return ms;
}

async function untilZero(cli, name) {
  for (const deadline = Date.now() + ZERO_LIMIT_MS; Date.now() < deadline; await wait(500)) {
    const { stdout } = await cli('instances', name, '-o', 'json');
    if (JSON.parse(stdout).instances.every(({ stopped_at: stopped }) => stopped !== null)) return;
  }
  throw new Error(`${name} still has instances`);
}

async function throughput(palestra, cli, folder) {
  const source = path.join(folder, 'echo');
  cpSync(path.join(folder, 'guess'), source, { recursive: true });
  writeFileSync(path.join(source, 'environment.ts'), ECHO);
  await cli('deploy', source, '--name', 'local/echo-hosted', '--min-warm', '1', '--max', '1');
  const port = await freePort();
  const server = path.join(root, 'libs/hosting/dist/target/serve-kit.js');
  const direct = await startServer(process.execPath, [server, path.join(source, 'environment.ts'), '127.0.0.1', String(port)], {}, port);
  try {
    await cli('deploy', '--name', 'local/echo-direct', '--url', direct.url);
    const side = (name) => ({ port: palestra.port, headers: { 'X-API-Key': apiKey, 'X-Deployment': name }, sessions });
    const { hosted, byUrl } = await playRounds({ hosted: side('local/echo-hosted'), byUrl: side('local/echo-direct') });
    const ratio = hosted.callsPerSecond / byUrl.callsPerSecond;
    return [
      {
        name: `calls per second in a container, ${sessions} sessions`,
        ours: hosted.callsPerSecond,
        theirs: byUrl.callsPerSecond,
        unit: '/s',
        ratio,
        target: 0.9,
      },
      { name: 'p50 of a call in a container', ours: hosted.p50Ms, theirs: byUrl.p50Ms, unit: 'ms', ratio: byUrl.p50Ms / hosted.p50Ms },
    ];
  } finally {
    await direct.stop();
  }
}

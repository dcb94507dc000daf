// `npm run dev`: one origin with the API, which restarts on a saved change, and the dashboard, which Vite updates in place. PostgreSQL keeps running between restarts.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, watch, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createServer, transformWithOxc } from 'vite';

const root = path.resolve(import.meta.dirname, '..');
const port = Number(process.env.PORT || 5173);
const origin = `http://127.0.0.1:${port}`;
const dataDir = path.resolve(root, process.env.PALESTRA_DATA_DIR || '.palestra/dev');
/** What the API runs. */
const PROJECTS = ['apps/api', 'apps/environments', ...readdirSync(path.join(root, 'libs')).map((name) => `libs/${name}`)];
const dashboard = path.join(root, 'apps/dashboard');
/** What Vite serves itself. Everything else is the API's, pages included: it redirects some, and marks those of the dashboard by their policy. */
const NOT_VITE = '^/(?!@|src/|node_modules/|favicon\\.svg)';
const PAGE_POLICY = 'require-trusted-types-for';
/** How long the API may take to end its sessions before it is killed. */
const END_MS = 1_000;

const built = spawnSync(process.execPath, [path.join(root, 'scripts/build.mjs'), '--no-dashboard'], { stdio: 'inherit' });
if (built.status !== 0) process.exit(1);
const { startEmbeddedPostgres } = await import('../apps/api/dist/platform/database/embedded-postgres.js');
const { freePort } = await import('@palestra/hosting');

const apiUrl = `http://127.0.0.1:${await freePort()}`;
const postgres = startEmbeddedPostgres(path.join(dataDir, 'postgres'));
let api;
/** The next one. */
let standby;
let announced = false;
let stopping = false;
/** Requests wait for it while the API starts. */
let ready;
/** Resolves when Vite listens. */
let listening;

/** A process that becomes the API when it gets a message. */
function spawnApi(database) {
  return spawn(process.execPath, [path.join(root, 'scripts/dev-api.mjs')], {
    // A Ctrl-C is for this script, which ends the API before its database.
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
    env: {
      // Node 22 and later start faster with what they compiled before.
      NODE_COMPILE_CACHE: path.join(root, '.cache/compile'),
      PALESTRA_DRAIN_S: '0',
      ...process.env,
      HOST: '127.0.0.1',
      PORT: new URL(apiUrl).port,
      DATABASE_URL: database.url,
      DATABASE_MIGRATION_URL: database.migrationUrl,
      PALESTRA_DATA_DIR: dataDir,
      PALESTRA_PUBLIC_URL: origin,
    },
  });
}

/** Resolves when the API answers, or has ended. */
async function startApi() {
  const database = await postgres;
  if (stopping) return;
  const startedAt = Date.now();
  const child = standby?.connected ? standby : spawnApi(database);
  standby = undefined;
  child.send('start');
  api = child;
  await new Promise((resolve) => {
    let output = '';
    child.stdout.on('data', (data) => {
      output += data;
      if (!output.includes('Palestra is ready')) return;
      output = '';
      if (announced) console.log(`API restarted in ${Date.now() - startedAt} ms`);
      // If Vite cannot listen, this script ends.
      else listening.then(announce, () => {});
      if (!stopping) standby = spawnApi(database);
      resolve();
    });
    child.once('exit', (code, signal) => {
      if (api === child && !stopping) console.log(`The API ended (${signal ?? code}); the next saved change starts it again.`);
      resolve();
    });
  });
}

/** The API, whose stdout is a pipe, has written its key and link to a file. */
function announce() {
  announced = true;
  const file = path.join(dataDir, 'sign-in.txt');
  console.log(`\nReady in ${(performance.now() / 1000).toFixed(1)} s at ${origin}`);
  if (!process.stdout.isTTY) return console.log(`The API key and a link that signs your browser in are in ${file}\n`);
  const text = readFileSync(file, 'utf8');
  console.log(`API key: ${/OPENREWARD_API_KEY=(\S+)/.exec(text)?.[1]}`);
  console.log(`Dashboard (this link signs your browser in, once):\n  ${/http\S+\/login\?token=\S+/.exec(text)?.[0]}\n`);
}

/** The API with the environments that it started. */
function killGroup({ pid }) {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // Nothing is left of it.
  }
}

async function restartApi() {
  const child = api;
  api = undefined;
  if (child && child.exitCode === null && child.signalCode === null) {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await Promise.race([ended, delay(END_MS)]);
  }
  if (child) killGroup(child);
  await startApi();
}

/**
 * Compiles saved files and calls back once for those saved together. Only syntax: a project takes `tsc` seconds, a file takes Oxc a millisecond. Types are for the
 * editor and `npm run check`.
 */
function watchSources(onChange) {
  let timer;
  const saved = new Set();
  const compile = async () => {
    const files = [...saved];
    saved.clear();
    try {
      for (const file of files) await compileFile(file);
      onChange();
    } catch (error) {
      console.error(error.message);
    }
  };
  const save = (file) => {
    if (!/(?<!\.spec|\.d)\.ts$/.test(file) || !projectOf(file)) return;
    saved.add(file);
    clearTimeout(timer);
    timer = setTimeout(() => void compile(), 20);
  };
  // Before this returns every folder is watched. Folders, not files: an editor may replace a file by another one.
  const watchFolder = (folder) => {
    watch(folder, (_event, name) => {
      const file = path.join(folder, name ?? '');
      const found = statSync(file, { throwIfNoEntry: false });
      if (found?.isFile()) save(file);
      else if (found?.isDirectory() && file !== folder) watchFolder(file);
    });
    for (const entry of readdirSync(folder, { withFileTypes: true })) if (entry.isDirectory()) watchFolder(path.join(folder, entry.name));
  };
  for (const project of PROJECTS) watchFolder(path.join(root, project, 'src'));
}

const projectOf = (file) => PROJECTS.find((project) => file.startsWith(path.join(root, project, 'src') + path.sep));

async function compileFile(file) {
  const project = path.join(root, projectOf(file));
  const target = path.join(project, 'dist', path.relative(path.join(project, 'src'), file)).replace(/\.ts$/, '.js');
  const { code, map } = await transformWithOxc(readFileSync(file, 'utf8'), file, {
    lang: 'ts',
    target: 'es2023',
    typescript: { onlyRemoveTypeImports: true, rewriteImportExtensions: 'rewrite' },
    decorator: { legacy: true, emitDecoratorMetadata: true },
  });
  // Without the record of its last build, the next one by `tsc` replaces these files.
  rmSync(path.join(project, 'dist/.tsbuildinfo'), { force: true });
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(`${target}.map`, JSON.stringify(map));
  writeFileSync(target, `${code}\n//# sourceMappingURL=${path.basename(target)}.map\n`);
}

/** The page of the dashboard comes from Vite, with its client for updates and without the policy that refuses it. */
async function answer(vite, response, request, reply) {
  if (!response.headers['content-security-policy']?.includes(PAGE_POLICY)) {
    reply.writeHead(response.statusCode, response.headers);
    response.on('error', () => reply.destroy());
    return void response.pipe(reply);
  }
  response.resume();
  const html = await vite.transformIndexHtml(request.url, readFileSync(path.join(dashboard, 'index.html'), 'utf8'));
  reply.writeHead(response.statusCode === 404 ? 404 : 200, { 'content-type': 'text/html', 'cache-control': 'no-store' });
  reply.end(html);
}

async function startVite() {
  const server = await createServer({
    root: dashboard,
    configFile: path.join(dashboard, 'vite.config.ts'),
    logLevel: 'warn',
    clearScreen: false,
    server: {
      host: '127.0.0.1',
      port,
      strictPort: true,
      proxy: {
        [NOT_VITE]: {
          target: apiUrl,
          ws: true,
          selfHandleResponse: true,
          // A string means that Vite answers: its client for updates has a socket at the path `/`.
          bypass: async ({ headers, url }) => (headers['sec-websocket-protocol']?.startsWith('vite-') ? url : void (await ready)),
          configure: (proxy) =>
            proxy.on('proxyRes', (response, request, reply) => void answer(server, response, request, reply).catch(() => reply.destroy())),
        },
      },
    },
  });
  return server.listen();
}

/** The API is killed, then PostgreSQL is stopped: neither is in the process group that a terminal interrupts. */
async function stop(code) {
  if (stopping) return;
  stopping = true;
  for (const child of [api, standby]) if (child) killGroup(child);
  await postgres.then(
    (server) => server.stop(),
    () => {},
  );
  process.exit(code);
}
// Its terminal was closed.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => void stop(0));

ready = startApi();
try {
  listening = startVite();
  watchSources(() => (ready = ready.then(restartApi)));
  await Promise.all([listening, ready]);
} catch (error) {
  console.error(`dev: ${error.message}`);
  await stop(1);
}

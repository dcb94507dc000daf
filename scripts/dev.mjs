// `npm run dev`: one origin with the API, which restarts on a saved change, and the dashboard, which Vite updates in place. PostgreSQL keeps running between restarts.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
let announced = false;
let stopping = false;
/** Requests wait for it while the API starts. */
let ready;

/** Resolves when the API answers, or has ended. */
async function startApi() {
  const { url: databaseUrl } = await postgres;
  if (stopping) return;
  const startedAt = Date.now();
  const child = spawn(process.execPath, [path.join(root, 'apps/api/dist/main.js')], {
    // A Ctrl-C is for this script, which ends the API before its database.
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      // Node 22 and later start faster with what they compiled before.
      NODE_COMPILE_CACHE: path.join(root, '.cache/compile'),
      PALESTRA_DRAIN_S: '0',
      ...process.env,
      HOST: '127.0.0.1',
      PORT: new URL(apiUrl).port,
      DATABASE_URL: databaseUrl,
      PALESTRA_DATA_DIR: dataDir,
      PALESTRA_PUBLIC_URL: origin,
    },
  });
  api = child;
  await new Promise((resolve) => {
    let output = '';
    child.stdout.on('data', (data) => {
      output += data;
      const link = /http:\S+\/login\?token=\S+(?=\s)/.exec(output)?.[0];
      if (!link) return;
      output = '';
      if (announced) console.log(`API restarted in ${Date.now() - startedAt} ms`);
      else announce(link);
      resolve();
    });
    child.once('exit', (code, signal) => {
      if (api === child && !stopping) console.log(`The API ended (${signal ?? code}); the next saved change starts it again.`);
      resolve();
    });
  });
}

function announce(link) {
  announced = true;
  const key = process.env.PALESTRA_API_KEY ?? readFileSync(path.join(dataDir, 'api-key'), 'utf8').trim();
  console.log(`\nReady in ${(performance.now() / 1000).toFixed(1)} s at ${origin}, with the API key ${key}`);
  console.log(`Dashboard (this link signs your browser in, once):\n  ${link}\n`);
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
function watchSources({ watcher }, onChange) {
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
  watcher.add(PROJECTS.map((project) => path.join(root, project, 'src')));
  for (const event of ['add', 'change']) watcher.on(event, save);
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

/** The API is killed: a terminal's Ctrl-C reaches PostgreSQL too, which then refuses what the API would still write. */
async function stop(code) {
  if (stopping) return;
  stopping = true;
  if (api) killGroup(api);
  await postgres.then(
    (server) => server.stop(),
    () => {},
  );
  process.exit(code);
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => void stop(0));

ready = startApi();
try {
  const [vite] = await Promise.all([startVite(), ready]);
  watchSources(vite, () => (ready = ready.then(restartApi)));
} catch (error) {
  console.error(`dev: ${error.message}`);
  await stop(1);
}

// Builds everything that is out of date: Prisma's client, the TypeScript projects (incremental), the dashboard and the documentation site
// (`--no-dashboard` skips both).
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');

function run(command, args, options = {}) {
  const result = spawnSync(process.execPath, [path.join(root, 'node_modules', command), ...args], {
    cwd: options.cwd ?? root,
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    env: { ...process.env, ...options.env },
  });
  if (result.status !== 0) {
    process.stderr.write(result.stdout + result.stderr);
    process.exit(result.status ?? 1);
  }
}

function newest(folder) {
  let time = 0;
  if (!existsSync(folder)) return time;
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (entry.isFile()) time = Math.max(time, statSync(path.join(entry.parentPath, entry.name)).mtimeMs);
  }
  return time;
}
const at = (file) => (existsSync(path.join(root, file)) ? statSync(path.join(root, file)).mtimeMs : 0);
const withPages = !process.argv.includes('--no-dashboard');

/** Needs nothing of the other parts, which use one core each: together with them it takes a few seconds. */
function buildDocs() {
  const site = path.join(root, 'apps/docs');
  if (!withPages) return null;
  const inputs = Math.max(
    newest(path.join(root, 'docs')),
    newest(path.join(site, 'scripts')),
    newest(path.join(site, '.vitepress')),
    ...readdirSync(root).map((name) => (name.endsWith('.md') ? at(name) : 0)),
    at('integrations/python/README.md'),
  );
  if (inputs <= at('apps/docs/dist/index.html')) return null;
  const child = spawn(process.execPath, [path.join(site, 'scripts/build.mjs')], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (output += data));
  return once(child, 'close').then(([status]) => {
    if (status === 0) return;
    process.stderr.write(output);
    process.exit(1);
  });
}

const newestSchema = Math.max(
  ...readdirSync(path.join(root, 'apps/api/prisma'))
    .filter((name) => name.endsWith('.prisma'))
    .map((name) => at(`apps/api/prisma/${name}`)),
);

const docs = buildDocs();
if (newestSchema > at('apps/api/src/platform/generated/prisma/client.ts')) {
  // Prisma tries to download a schema engine that `generate` does not use. Any existing file satisfies it.
  run('prisma/build/index.js', ['generate', '--schema', 'apps/api/prisma'], {
    env: { PRISMA_SCHEMA_ENGINE_BINARY: path.join(root, 'package.json'), PRISMA_HIDE_UPDATE_MESSAGE: '1' },
  });
}
run('typescript/bin/tsc', ['-b', 'tsconfig.build.json']);
const dashboard = path.join(root, 'apps/dashboard');
if (withPages && existsSync(path.join(dashboard, 'index.html'))) {
  const inputs = Math.max(
    newest(path.join(dashboard, 'src')),
    at('apps/dashboard/index.html'),
    at('apps/dashboard/vite.config.ts'),
    newest(path.join(root, 'libs/protocol/src')),
    newest(path.join(root, 'libs/kit/src')),
    newest(path.join(root, 'libs/rollouts/src')),
    newest(path.join(root, 'libs/metrics/src')),
    newest(path.join(root, 'libs/query/src')),
  );
  if (inputs > at('apps/dashboard/dist/index.html')) run('vite/bin/vite.js', ['build', '--logLevel', 'warn'], { cwd: dashboard });
}
await docs;

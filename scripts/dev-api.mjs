// The next API of `npm run dev`: loads the packages of others, which a saved change does not concern, and waits until it may start. That takes a second off a restart.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';

process.title = 'palestra-dev-api';
// `npm run dev` was killed.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
const manifest = new URL('../apps/api/package.json', import.meta.url);
const { dependencies } = JSON.parse(readFileSync(manifest, 'utf8'));
const mayStart = once(process, 'message');
const packages = Object.keys(dependencies).filter((name) => !name.startsWith('@palestra/'));
// Some have no main module; the API loads parts of them itself.
await Promise.allSettled(['reflect-metadata', ...packages].map((name) => import(name)));
await mayStart;
await import('../apps/api/dist/main.js');

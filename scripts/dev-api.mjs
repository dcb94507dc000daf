// The next API process of `npm run dev`: loads third-party packages, which do not change, and waits for its start. That saves a second
// per restart.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';

process.title = 'palestra-dev-api';
// `npm run dev` was killed.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
const manifest = new URL('../apps/api/package.json', import.meta.url);
const { dependencies } = JSON.parse(readFileSync(manifest, 'utf8'));
const mayStart = once(process, 'message');
const packages = Object.keys(dependencies).filter((name) => !name.startsWith('@palestra/'));
// Some packages have no main module; the API loads parts of them.
await Promise.allSettled(['reflect-metadata', ...packages].map((name) => import(name)));
await mayStart;
await import('../apps/api/dist/main.js');

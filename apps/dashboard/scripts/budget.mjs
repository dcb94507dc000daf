// Fails when the built dashboard is heavier than its budget: gzip kB of what the first page needs
// (shell) and of what each route adds to it. Run after `npm run build`.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

const dist = path.resolve(import.meta.dirname, '../dist');
const budgetKb = { shell: 200, route: 120, css: 25 };
const manifest = JSON.parse(readFileSync(path.join(dist, '.vite/manifest.json'), 'utf8'));
const kb = (file) => gzipSync(readFileSync(path.join(dist, file)), { level: 9 }).length / 1000;

/** All chunks that an entry imports statically, itself included. */
function closure(name, seen = new Set()) {
  if (seen.has(name)) return seen;
  seen.add(name);
  for (const imported of manifest[name].imports ?? []) closure(imported, seen);
  return seen;
}
const scripts = (names) => [...names].reduce((sum, name) => sum + kb(manifest[name].file), 0);
const styles = (names) => [...new Set([...names].flatMap((name) => manifest[name].css ?? []))].reduce((sum, file) => sum + kb(file), 0);

const entry = Object.keys(manifest).find((name) => manifest[name].isEntry);
const shell = closure(entry);
const routes = Object.keys(manifest).filter((name) => manifest[name].isDynamicEntry);
const lines = [
  ['shell', scripts(shell), budgetKb.shell],
  ['shell CSS', styles(shell), budgetKb.css],
  ...routes.map((name) => [name, scripts([...closure(name)].filter((chunk) => !shell.has(chunk))), budgetKb.route]),
];
for (const [name, size, limit] of lines)
  console.log(`${size <= limit ? 'ok  ' : 'OVER'} ${size.toFixed(1).padStart(6)} of ${limit} kB  ${name}`);
if (routes.length < 5) throw new Error(`Only ${routes.length} routes were found in the manifest: the budget check has gone blind.`);
process.exitCode = lines.some(([, size, limit]) => size > limit) ? 1 : 0;

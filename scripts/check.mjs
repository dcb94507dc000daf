// `npm run check`: all checks that do not run the product, in parallel, in under 30 s.
import { spawn } from 'node:child_process';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '..');
const bin = (name) => path.join(root, 'node_modules/.bin', name);

const checks = [
  ['types', bin('tsc'), '--noEmit'],
  ['lint', bin('oxlint'), '--type-aware', '--tsconfig', 'tsconfig.json', '--deny-warnings'],
  ['format', bin('oxfmt'), '--check', '.'],
  ['architecture', bin('vitest'), 'run', '--project', 'unit', 'tests/architecture.spec.ts'],
  ['unused code', bin('knip'), '--no-progress'],
];

function run([name, command, ...args]) {
  const started = performance.now();
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (data) => (output += data));
    child.stderr.on('data', (data) => (output += data));
    child.on('error', (error) => resolve({ name, output: String(error), code: 1, seconds: 0 }));
    child.on('close', (code) => resolve({ name, output, code, seconds: (performance.now() - started) / 1000 }));
  });
}

const results = await Promise.all(checks.map(run));
for (const { name, code, seconds, output } of results) {
  console.log(`${code === 0 ? 'ok  ' : 'FAIL'} ${name} (${seconds.toFixed(1)} s)`);
  if (code !== 0) console.log(output);
}
process.exitCode = results.some(({ code }) => code !== 0) ? 1 : 0;

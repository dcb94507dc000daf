// The reconciler on 10 000 simulated instances: from nothing to all of them, and back to all after a third died at once. It and its PostgreSQL
// run on one core. The cluster is simulated in memory (support/simulated-cluster.mjs); the reconciler, its queries and the log store are real.
// PALESTRA_BENCH_INSTANCES: another number.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { atMost, shown } from './support/figures.mjs';

const INSTANCES = Number(process.env.PALESTRA_BENCH_INSTANCES ?? 10_000);
const GOAL_SECONDS = 60;

export async function benchHostingScale() {
  const program = path.join(import.meta.dirname, 'hosting-scale-load.mjs');
  // PostgreSQL inherits the core.
  const load = spawn('taskset', ['-c', '0', process.execPath, program, String(INSTANCES)], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  load.stdout.on('data', (data) => (output += data));
  const [code] = await once(load, 'close');
  if (code !== 0) throw new Error(`hosting-scale-load.mjs ended with ${code}`);
  const { phases, decideMs, idle } = JSON.parse(output.trim().split('\n').at(-1));
  const rows = phases.flatMap(({ name, seconds, reconcilerCores, postgresCores, passMs }) => [
    atMost(GOAL_SECONDS, `${INSTANCES} instances, ${name}`, seconds, 's'),
    shown(`${name}: the reconciler uses`, reconcilerCores, 'cores'),
    shown(`${name}: PostgreSQL uses`, postgresCores, 'cores'),
    shown(`${name}: median of a pass`, passMs, 'ms'),
  ]);
  return [
    ...rows,
    shown('nothing changes: the reconciler uses', idle.reconcilerCores, 'cores'),
    shown('nothing changes: PostgreSQL uses', idle.postgresCores, 'cores'),
    atMost(100, `decide() alone, ${INSTANCES} instances, a third of them dead`, decideMs, 'ms'),
  ];
}

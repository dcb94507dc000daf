// The loaded service stopped and started again: by SIGTERM, and by SIGKILL of all its processes while rollouts are uploaded. Time until
// it is ready, and the first read of each kind.
import { wait } from './support/client.mjs';
import { atMost, shown } from './support/figures.mjs';
import { firstReads } from './support/reads.mjs';
import { loadRollouts, RUNS, settled } from './support/store.mjs';

const READY_SECONDS = 10;
const FIRST_READ_MS = 500;
/** How long it is loaded before it is killed. */
const LOADED_MS = 5_000;
const KILLED_ROLLOUTS = 1_000_000;

async function after(store, how) {
  const { stopSeconds, startSeconds } = await store.restart(how);
  const name = how === 'kill' ? 'kill -9 of all processes under load' : 'SIGTERM';
  const reads = await firstReads(store.client(), RUNS[0]);
  return [
    shown(`${name}: stopped after`, stopSeconds, 's'),
    atMost(READY_SECONDS, `${name}: ready again after`, startSeconds, 's'),
    ...reads.map(([read, ms]) => atMost(FIRST_READ_MS, `${name}: first ${read}`, ms, 'ms')),
  ];
}

export async function benchRestart(store) {
  await store.fill();
  const rows = await after(store, 'stop');
  // Ends with an error when the service is killed.
  const interrupted = loadRollouts(store.palestra(), { from: 0, count: KILLED_ROLLOUTS, run: 'killed' }).then(
    () => Promise.reject(new Error('the load ended before the service was killed')),
    (error) => error,
  );
  await wait(LOADED_MS);
  rows.push(...(await after(store, 'kill')));
  await interrupted;
  const { body } = await store.client().get(`/v1/runs/${RUNS[0]}`);
  await settled(store.client(), RUNS[0], body.num_rollouts);
  return rows;
}

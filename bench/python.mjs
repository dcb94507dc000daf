// The recorder of the Python package against a loop that posts the same events with httpx alone, and how long a trainer waits for it.
import path from 'node:path';
import { atMost, median } from './support/figures.mjs';
import { freePort, startServer, time } from './support/processes.mjs';

const EVENTS = Number(process.env.PALESTRA_BENCH_MESSAGES ?? 50_000);
const ROUNDS = Number(process.env.PALESTRA_BENCH_ROUNDS ?? 3);
/** A trainer may wait for its recorder so long. */
const LONGEST_MS = 1_000;

/** Against a server that only reads. */
export async function benchPython(python) {
  const port = await freePort();
  const sink = await startServer(process.execPath, [path.join(import.meta.dirname, 'upload-sink.mjs'), String(port)], {}, port);
  try {
    const script = path.join(import.meta.dirname, 'python_recorder.py');
    const { stdout } = await time(python, [script, sink.url, String(EVENTS), String(ROUNDS)]);
    const { recorder, loop, longest, down } = JSON.parse(stdout);
    const [ours, theirs] = [median(recorder), median(loop)];
    return [
      {
        name: 'messages of 1 kB per second, by the recorder and by a loop of httpx',
        ours,
        theirs,
        unit: '/s',
        ratio: ours / theirs,
        target: null,
      },
      atMost(LONGEST_MS, 'longest call of the recorder, service up', 1_000 * Math.max(...longest), 'ms'),
      atMost(LONGEST_MS, 'longest call of the recorder, service down', 1_000 * Math.max(...down), 'ms'),
    ];
  } finally {
    await sink.stop();
  }
}

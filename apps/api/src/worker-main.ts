import { ALIVE_MS, type WorkerRequest, type WorkerResponse } from './platform/worker-process.ts';
import type { RunningWorker } from './worker.ts';

/** The worker beside an API process (platform/worker-process.ts), which starts and stops it by messages. */

// Ctrl-C and `systemctl stop` signal the whole group, but jobs go on until the API has drained.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
// The terminal or the reader of the log may close.
process.stderr.on('error', () => {});
// The API process was killed. Another run continues what its jobs leave.
process.once('disconnect', () => process.exit(1));
// Also before this line.
if (!process.connected) process.exit(1);

let worker: RunningWorker | undefined;
const respond = (response: WorkerResponse) => process.send!(response, () => {});
setInterval(() => respond({ type: 'alive' }), ALIVE_MS);

async function handle(request: WorkerRequest): Promise<void> {
  if (request.type === 'start') {
    // Loaded late: until the lines above have run, a signal ends this process.
    const { startWorker } = await import('./worker.ts');
    worker = await startWorker(request.config);
    worker.registry.setDefaultLabels({ process: 'worker' });
    respond({ type: 'running' });
  } else if (request.type === 'metrics') respond({ type: 'metrics', text: (await worker?.registry.metrics()) ?? '' });
  else {
    await worker?.close();
    process.exit(0);
  }
}

process.on('message', (request: WorkerRequest) => {
  handle(request).catch((error: unknown) => {
    process.stderr.write(`palestra worker: ${(error as Error).stack}\n`);
    process.exit(1);
  });
});

import { exitOnSecondInterrupt, readWorkerConfig, startWorker, workerFault } from '@palestra/api/worker';

/** Runs the service's background jobs without its routes (docs/adr/0015). It reads the API's settings; SIGTERM stops it. */
async function main(): Promise<void> {
  const stopping = new AbortController();
  const stop = () => stopping.abort();
  process.on('SIGINT', stop);
  process.on('SIGTERM', stop);
  const worker = await startWorker(readWorkerConfig(process.env));
  process.stdout.write(worker.url === null ? 'Palestra worker is running.\n' : `Palestra worker is running; ${worker.url}/health\n`);
  if (!stopping.signal.aborted) await new Promise((resolve) => stopping.signal.addEventListener('abort', resolve, { once: true }));
  process.stdout.write('Stopping ...\n');
  exitOnSecondInterrupt();
  await worker.close();
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`palestra worker: ${workerFault(error)}\n`);
    process.exit(1);
  },
);

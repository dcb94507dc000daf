import { Worker } from 'node:worker_threads';
import { PalestraError } from '@palestra/protocol';
import type { WorkResponse, WorkRequest } from './work-process.ts';

/** Main module of a `WorkProcess`: runs the default export of one module on one input, sends the response, and waits to be killed. */

async function respond({ module, input }: WorkRequest): Promise<WorkResponse> {
  try {
    const { default: work } = (await import(module)) as { default: (input: unknown) => unknown };
    return { value: await work(input) };
  } catch (error) {
    if (error instanceof PalestraError) return { error: { code: error.code, detail: String(error.detail) } };
    return { failure: error instanceof Error ? `${error.message}\n${error.stack}` : String(error) };
  }
}

/** The service may be killed while the work computes: a second thread notices that the process has another parent. */
const WATCH = `const parent = ${process.ppid}; setInterval(() => process.ppid === parent || process.kill(process.pid, 'SIGKILL'), 1000)`;
new Worker(WATCH, { eval: true }).unref();

process.once('message', (request) => {
  void respond(request as WorkRequest).then((response) => process.send!(response));
});
process.once('disconnect', () => process.exit());
if (!process.connected) process.exit();

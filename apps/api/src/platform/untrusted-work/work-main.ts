import { Worker } from 'node:worker_threads';
import { PalestraError } from '@palestra/protocol';
import type { WorkResponse, WorkRequest } from './work-process.ts';

/** The process of `WorkProcess`: runs the default export of one module on one input, answers, and waits to be killed. */

async function answer({ module, input }: WorkRequest): Promise<WorkResponse> {
  try {
    const { default: work } = (await import(module)) as { default: (input: unknown) => unknown };
    return { value: await work(input) };
  } catch (error) {
    if (error instanceof PalestraError) return { error: { code: error.code, detail: String(error.detail) } };
    return { failure: error instanceof Error ? `${error.message}\n${error.stack}` : String(error) };
  }
}

/** The service may be killed while the work computes: a thread of its own sees that the process has another parent. */
const WATCH = `const parent = ${process.ppid}; setInterval(() => process.ppid === parent || process.kill(process.pid, 'SIGKILL'), 1000)`;
new Worker(WATCH, { eval: true }).unref();

process.once('message', (request) => {
  void answer(request as WorkRequest).then((given) => process.send!(given));
});
process.once('disconnect', () => process.exit());

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ValidateOptions } from '@palestra/environment-kit';
import type { NamedReport, ValidationMessage } from './validate-kit.ts';

const CHILD = fileURLToPath(new URL('validate-kit.js', import.meta.url));
const KEPT_OUTPUT = 4_000;

/**
 * Validates the environments of a module in a child process, whose output goes to stderr. Rejects with the reason if the module cannot be
 * loaded or its process ends, and with the signal's reason.
 */
export async function validateModule(file: string, options: ValidateOptions, signal: AbortSignal): Promise<NamedReport[]> {
  signal.throwIfAborted();
  const child = fork(CHILD, [file, JSON.stringify(options)], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] });
  let output = '';
  for (const stream of [child.stdout!, child.stderr!]) {
    stream.on('data', (data: Buffer) => {
      output = (output + data.toString()).slice(-KEPT_OUTPUT);
      process.stderr.write(data);
    });
  }
  const kill = () => child.kill('SIGKILL');
  signal.addEventListener('abort', kill, { once: true });
  let message: ValidationMessage | null = null;
  child.on('message', (received) => (message = received as ValidationMessage));
  try {
    const [code, cause] = (await once(child, 'close')) as [number | null, string | null];
    signal.throwIfAborted();
    if (message === null) {
      const last = output.trim().split('\n').at(-1) ?? '';
      throw new Error(`The module ended its process (${cause ?? `exit status ${code}`}).${last && ` Its last output: ${last}`}`);
    }
    const received = message as ValidationMessage;
    if ('error' in received) throw new Error(received.error);
    return received.reports;
  } finally {
    signal.removeEventListener('abort', kill);
    kill();
  }
}

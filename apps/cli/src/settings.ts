import { PalestraClient } from '@palestra/client';
import { readSettings, UsageError } from './server-settings.ts';

export { UsageError };

const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Runs `use` with a signal that Ctrl-C, SIGTERM and the end of the terminal abort. */
export async function withInterrupt<T>(use: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupt = new AbortController();
  const onSignal = () => interrupt.abort(new UsageError('interrupted'));
  for (const signal of ENDING) process.once(signal, onSignal);
  try {
    return await use(interrupt.signal);
  } finally {
    for (const signal of ENDING) process.off(signal, onSignal);
  }
}

/** Runs `use` with a client, and lets go of it afterwards. Ctrl-C aborts every request. */
export function withClient<T>(use: (client: PalestraClient, signal: AbortSignal) => Promise<T>): Promise<T> {
  return withInterrupt(async (signal) => {
    const client = new PalestraClient({ ...readSettings(process.env), signal });
    try {
      return await use(client, signal);
    } finally {
      await client.close();
    }
  });
}

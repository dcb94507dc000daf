import { type ClientOptions, PalestraClient } from '@palestra/client';
import { readSettings, UsageError } from './server-settings.ts';

export { UsageError };

const END_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Runs `use` with a signal that aborts on Ctrl-C, SIGTERM and SIGHUP. */
export async function withInterrupt<T>(use: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupt = new AbortController();
  const onSignal = () => interrupt.abort(new UsageError('interrupted'));
  for (const signal of END_SIGNALS) process.once(signal, onSignal);
  try {
    return await use(interrupt.signal);
  } finally {
    for (const signal of END_SIGNALS) process.off(signal, onSignal);
  }
}

/** Runs `use` with a client and closes it afterwards. Ctrl-C aborts every request. */
export function withClient<T>(
  use: (client: PalestraClient, signal: AbortSignal) => Promise<T>,
  options: Pick<ClientOptions, 'uploads'> = {},
): Promise<T> {
  return withInterrupt(async (signal) => {
    const client = new PalestraClient({ ...readSettings(process.env), ...options, signal });
    try {
      return await use(client, signal);
    } finally {
      await client.close();
    }
  });
}

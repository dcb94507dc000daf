import { once } from 'node:events';
import { connect } from 'node:net';
import { type ClientOptions, ConnectionError, PalestraClient } from '@palestra/client';
import { InterruptedError } from './exit-codes.ts';
import { readSettings, UsageError } from './server-settings.ts';

export { UsageError };

const END_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Runs `use` with a signal that aborts on Ctrl-C, SIGTERM and SIGHUP, with an `InterruptedError` as its reason. */
export async function withInterrupt<T>(use: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupt = new AbortController();
  const onSignal = (signal: (typeof END_SIGNALS)[number]) => interrupt.abort(new InterruptedError(signal));
  for (const signal of END_SIGNALS) process.once(signal, onSignal);
  try {
    return await use(interrupt.signal);
  } finally {
    for (const signal of END_SIGNALS) process.off(signal, onSignal);
  }
}

const CONNECT_MS = 3_000;

/**
 * Throws `ConnectionError` if nothing listens at the address of the server. The client repeats refused requests for half a minute, for
 * servers that restart while a command runs; a person with a wrong address should not wait for that.
 */
async function assertListening(url: string): Promise<void> {
  const { hostname, port, protocol } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const socket = connect({ host, port: Number(port) || (protocol === 'https:' ? 443 : 80), timeout: CONNECT_MS });
  try {
    await Promise.race([once(socket, 'connect'), once(socket, 'timeout')]);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ECONNREFUSED' || code === 'ENOTFOUND') throw new ConnectionError(`${url}: ${message || code}`, false, { cause: error });
  } finally {
    socket.destroy();
  }
}

/**
 * Runs `use` with a client and closes it afterwards. Ctrl-C aborts every request, except of a client whose `signal` is another one, which can
 * end its work.
 */
export function withClient<T>(
  use: (client: PalestraClient, signal: AbortSignal) => Promise<T>,
  options: Pick<ClientOptions, 'uploads' | 'signal'> = {},
): Promise<T> {
  return withInterrupt(async (signal) => {
    const settings = readSettings(process.env);
    await assertListening(settings.url);
    const client = new PalestraClient({ ...settings, signal, ...options });
    try {
      return await use(client, signal);
    } finally {
      await client.close();
    }
  });
}

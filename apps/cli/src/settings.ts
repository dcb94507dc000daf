import { PalestraClient } from '@palestra/client';

/** A mistake of the user: printed as one line, exit status 2. */
export class UsageError extends Error {}

export interface Settings {
  url: string;
  sessionUrl: string;
  apiKey: string;
}

/** The server to talk to: PALESTRA_* first, then what the `openreward` SDK reads. */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const fallback = 'http://127.0.0.1:8080';
  const url = env['PALESTRA_URL'] || env['OPENREWARD_API_URL'] || env['OPENREWARD_URL'] || fallback;
  const sessionUrl = env['PALESTRA_URL'] || env['OPENREWARD_SESSION_URL'] || env['OPENREWARD_URL'] || url;
  for (const text of [url, sessionUrl]) if (!URL.canParse(text)) throw new UsageError(`not a URL: ${text}`);
  return { url, sessionUrl, apiKey: env['PALESTRA_API_KEY'] || env['OPENREWARD_API_KEY'] || '' };
}

/** Runs `use` with a signal that Ctrl-C and SIGTERM abort. */
export async function withInterrupt<T>(use: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupt = new AbortController();
  const onSignal = () => interrupt.abort(new UsageError('interrupted'));
  process.once('SIGINT', onSignal);
  process.once('SIGTERM', onSignal);
  try {
    return await use(interrupt.signal);
  } finally {
    process.off('SIGINT', onSignal);
    process.off('SIGTERM', onSignal);
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

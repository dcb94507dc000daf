import path from 'node:path';
import { replaceSecret } from './platform/local-secrets.ts';
import type { RunningServer } from './server.ts';

/** File in the data directory with the first key and an owner's sign-in link, for a service without a terminal. Mode 0600. */
export const SIGN_IN_FILE = 'sign-in.txt';

/**
 * The message after the start. The first key and the sign-in link grant full access, so they are printed on a terminal only. Otherwise
 * stdout may be a log that others read: they are written to a file of mode 0600, and its path is printed.
 */
export async function announcement(server: RunningServer, dataDir: string, isTerminal: boolean): Promise<string> {
  if (isTerminal) return `\nPalestra is ready.\n\n${access(server)}\n`;
  const file = path.join(dataDir, SIGN_IN_FILE);
  try {
    await replaceSecret(dataDir, SIGN_IN_FILE, access(server).trimEnd());
    return `\nPalestra is ready at ${server.url}\nThe first API key and a link that signs a browser in are in ${file}\n\n`;
  } catch (error) {
    const { message } = error as Error;
    return `\nPalestra is ready at ${server.url}\nThe first API key and the sign-in link could not be written to ${file}: ${message}\n\n`;
  }
}

const access = ({ url, apiKey, signInUrl }: RunningServer) => `  export OPENREWARD_URL=${url}
  export OPENREWARD_API_URL=${url}
  export OPENREWARD_SESSION_URL=${url}
  export OPENREWARD_API_KEY=${apiKey}

Dashboard (this link signs your browser in, once):
  ${signInUrl}
`;

/** A mistake of the user; printed as one line, exit status 2. */
export class UsageError extends Error {}

export interface Settings {
  url: string;
  sessionUrl: string;
  apiKey: string;
}

/** The server to use: PALESTRA_* variables first, then those of the `openreward` SDK. */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const fallback = 'http://127.0.0.1:8080';
  const url = env['PALESTRA_URL'] || env['OPENREWARD_API_URL'] || env['OPENREWARD_URL'] || fallback;
  const sessionUrl = env['PALESTRA_URL'] || env['OPENREWARD_SESSION_URL'] || env['OPENREWARD_URL'] || url;
  for (const text of [url, sessionUrl])
    if (!URL.canParse(text) || !/^https?:\/\//i.test(text))
      throw new UsageError(
        `Invalid URL "${text}". Expected one such as ${fallback}. Check PALESTRA_URL, OPENREWARD_URL, OPENREWARD_API_URL and OPENREWARD_SESSION_URL.`,
      );
  return { url, sessionUrl, apiKey: env['PALESTRA_API_KEY'] || env['OPENREWARD_API_KEY'] || '' };
}

/** URL of an environment (`owner/name`) as an OpenEnv server. */
export function baseUrlOf(environment: string): string {
  return `${readSettings(process.env).sessionUrl.replace(/\/+$/, '')}/openenv/${environment}`;
}

import type { Palestra } from '../../support/palestra.ts';

/** The three URL variables and the key, as `npm start` prints them. */
export function clientEnv(palestra: Pick<Palestra, 'url' | 'apiKey'>, apiKey = palestra.apiKey): Record<string, string> {
  return {
    OPENREWARD_URL: palestra.url,
    OPENREWARD_API_URL: palestra.url,
    OPENREWARD_SESSION_URL: palestra.url,
    OPENREWARD_API_KEY: apiKey,
  };
}

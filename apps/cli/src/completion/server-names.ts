import { readBoundedText } from '@palestra/kit';
import { readSettings } from '../server-settings.ts';
import type { NameSource } from './complete.ts';

/** A person waits for the completion. */
const DEADLINE_MS = 1_000;
const LIMIT = 100;
/** A README is part of an environment, so a hundred of them can be long. */
const MAX_BYTES = 16_000_000;
/** Names are untrusted: shells would interpret other characters. */
const SAFE = /^[\w./+-]+$/;

/** Names of environments and runs. Empty without a server, a key or an answer within a second. */
export const serverNames: NameSource = {
  environments: async () => {
    const { environments } = (await get('/v1/environments')) as { environments: { owner: string; name: string }[] };
    return environments.map(({ owner, name }) => `${owner}/${name}`).filter(isSafe);
  },
  runs: async () => {
    const { runs } = (await get('/v1/runs')) as { runs: { name: string }[] };
    return [...new Set(runs.map(({ name }) => name))].filter(isSafe);
  },
};

const isSafe = (name: string): boolean => SAFE.test(name) && !name.startsWith('-');

async function get(path: string): Promise<unknown> {
  const { url, apiKey } = readSettings(process.env);
  const headers: Record<string, string> = apiKey ? { 'x-api-key': apiKey } : {};
  const answer = await fetch(`${new URL(url).origin}${path}?limit=${LIMIT}`, { headers, signal: AbortSignal.timeout(DEADLINE_MS) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return JSON.parse(await readBoundedText(answer.body, MAX_BYTES));
}

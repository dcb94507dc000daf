import { type Card, MAX_ANSWER_BYTES } from '@palestra/hosting';
import { splitCredentials } from '@palestra/kit';
import { readBoundedText } from '@palestra/kit';
import { z } from 'zod';

const TIMEOUT_MS = 10_000;

const metadata = z.looseObject({
  name: z.string(),
  description: z.string().default(''),
  version: z.string().nullish(),
  readme_content: z.string().nullish(),
});

/** Name, description and README that an OpenEnv server gives itself (`GET /metadata`); null if it gives none. */
export async function serverCard(base: string, signal: AbortSignal): Promise<(Card & { name: string }) | null> {
  const { url, headers } = splitCredentials(`${base}/metadata`);
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]);
  try {
    const answer = await fetch(url, { headers: { ...headers, accept: 'application/json' }, signal: deadline });
    const text = await readBoundedText(answer.body, MAX_ANSWER_BYTES);
    const read = answer.ok ? metadata.safeParse(JSON.parse(text)) : null;
    if (!read?.success) return null;
    const { name, description, version, readme_content: readme = null } = read.data;
    return { name, description: [description, version ? `version ${version}` : ''].filter(Boolean).join(' · '), readme };
  } catch {
    signal.throwIfAborted();
    return null;
  }
}

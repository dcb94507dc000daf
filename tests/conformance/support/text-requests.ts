import type { Palestra } from '../../support/palestra.ts';

/** One request to `/v1/text-sessions`. */
export async function requestText(palestra: Pick<Palestra, 'url' | 'apiKey'>, method: string, where: string, body?: object) {
  const answer = await fetch(`${palestra.url}/v1/text-sessions${where}`, {
    method,
    headers: { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, body: (await answer.json()) as any };
}

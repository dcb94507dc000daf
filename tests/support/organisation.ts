import { randomBytes } from 'node:crypto';

/** An organisation for a test file that shares the service with other files. */
export interface TestOrganisation {
  /** Its name, and the namespace of its environments. */
  name: string;
  /** A key of its owner with all scopes. */
  apiKey: string;
}

/** Creates an organisation with an owner's key over HTTP, as an operator does. `ownerKey`: the first key of the service. */
export async function createOrganisation(url: string, ownerKey: string): Promise<TestOrganisation> {
  const name = `test-${randomBytes(5).toString('hex')}`;
  const post = async (path: string, headers: Record<string, string>, body: object): Promise<any> => {
    const answer = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`POST ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  const { sign_in_url: link } = await post('/v1/organisations', { 'x-api-key': ownerKey }, { name });
  const cookie = await signIn(link);
  const { key } = await post(
    '/v1/keys',
    { cookie, 'sec-fetch-site': 'same-origin' },
    { name: 'tests', scopes: ['sessions', 'environments', 'rollouts', 'keys'] },
  );
  return { name, apiKey: key };
}

/** Confirms a sign-in link as a browser does and returns the cookie; empty if the link is not valid. */
export async function signIn(link: string): Promise<string> {
  const { origin, searchParams } = new URL(link);
  const body = new URLSearchParams({ token: searchParams.get('token') ?? '' });
  const answer = await fetch(`${origin}/login`, { method: 'POST', body, redirect: 'manual' });
  return (answer.headers.get('set-cookie') ?? '').split(';')[0]!;
}

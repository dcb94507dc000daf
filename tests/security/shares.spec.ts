import { afterAll, beforeAll, expect, test } from 'vitest';
import { seeded, upload } from '../integration/runs/run-reads.world.ts';
import { createCaller } from '../support/callers.ts';
import { signIn } from '../support/organisation.ts';
import { sharedServer, type TestServer } from '../support/server.ts';

/** Finding L5 of the audit: a share link does not change what people see of their own organisation. */

let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server.close());

test("L5: a link to a foreign rollout with the same id does not hide one's own", async () => {
  const rollouts = seeded('mine', { steps: 1, tasks: 1, n: 2 });
  const [id, foreign] = [rollouts[0]!.id, rollouts[1]!.id];
  await upload(server, 'mine', rollouts.slice(0, 1));
  const { body } = await server.request('POST', '/v1/members', { body: { name: `reader-${Date.now()}` } });
  const mine = await signIn(body.sign_in_url);

  const { headers } = await createCaller(server, 'attackers');
  const attacker: TestServer = { ...server, request: (method, path, options) => server.request(method, path, { ...options, headers }) };
  await upload(attacker, 'theirs', rollouts);
  const cookies: Record<string, string> = {};
  for (const rollout of [id, foreign]) {
    const link = await attacker.request('POST', '/v1/shares', { body: { rollout } });
    const opened = await fetch(link.body.url, { redirect: 'manual' });
    cookies[rollout] = `${mine}; ${(opened.headers.get('set-cookie') ?? '').split(';')[0]}`;
  }
  const read = async (rollout: string) => {
    const answer = await fetch(`${server.url}/v1/rollouts/${rollout}/header`, { headers: { cookie: cookies[rollout]! } });
    return { status: answer.status, body: (await answer.json()) as { run: { name: string } } };
  };
  expect(await read(id)).toMatchObject({ status: 200, body: { run: { name: 'mine' } } });
  // The link itself goes on to work for people who are signed in elsewhere.
  expect(await read(foreign)).toMatchObject({ status: 200, body: { run: { name: 'theirs' } } });
});

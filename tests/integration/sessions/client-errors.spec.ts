import { PalestraClient, type PalestraApiError } from '@palestra/client';
import { type RunningServer, serve } from '@palestra/environment-kit';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { counter } from '../../support/counted-sessions.ts';
import { startCuttingProxy } from '../../support/cutting-proxy.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

/** What goes wrong in the middle of an episode: the error of the TypeScript client says what to do, and nothing recorded is lost. */
let server: TestServer;
let upstream: RunningServer;
beforeAll(async () => {
  [server, upstream] = await Promise.all([sharedServer(), serve([counter])]);
});
afterAll(async () => {
  await server?.close();
  await upstream?.close();
});

async function environment(name: string): Promise<string> {
  const body = { name, isPrivate: true, source: { kind: 'remote', url: upstream.url } };
  expect((await server.request('POST', '/v1/environments', { body })).status).toBe(200);
  return `${server.orgName}/${name}`;
}
function clientOf(url = server.url, apiKey = server.apiKey): PalestraClient {
  const client = new PalestraClient({ url, apiKey, uploads: { maxAgeMs: 10 } });
  onTestFinished(async () => void (await client.close()));
  return client;
}
const newKey = async () => (await server.request('POST', '/v1/keys', { body: { name: 'mine' } })).body;
const contents = async (rollout: string) =>
  (await server.request('GET', `/v1/rollouts/${rollout}`)).body.messages.map(({ content }: { content: string }) => content);
const failureOf = (error: PalestraApiError) => [error.name, error.code, error.failureClass, error.retryable];
const task = { split: 'train', index: 0, pingIntervalMs: 0 };

test('the key is revoked: the recording continues with another key', async () => {
  const created = await newKey();
  const client = clientOf(server.url, created.key);
  const session = await client.session({ environment: await environment('revoked'), ...task });
  const rollout = await client.rollouts.start({ runName: 'revoked' });
  await rollout.log({ type: 'user_message', content: 'before' });
  await client.rollouts.flush();
  await server.request('DELETE', `/v1/keys/${created.id}`);
  const refused = session.call('add', { by: 1 });
  await expect(refused.catch(failureOf)).resolves.toEqual(['PalestraApiError', 'key_revoked', 'infrastructure', false]);
  await expect(refused).rejects.toMatchObject({ advice: expect.stringContaining('Create another API key') });
  await rollout.log({ type: 'user_message', content: 'after' });
  expect(await client.rollouts.flush()).toMatchObject({ stored: 2, unsent: 1, error: { code: 'key_revoked' } });

  client.setApiKey((await newKey()).key);
  expect(await client.rollouts.flush()).toEqual({ stored: 3, unsent: 0, error: null });
  expect(await contents(rollout.id)).toEqual(['before', 'after']);
  // The session belongs to the organisation and goes on.
  expect(await session.call('add', { by: 1 })).toMatchObject({ blocks: [{ text: 'now 1' }] });
  await session.close();
});

test('the environment is deleted: the session ends, and another one names the reason', async () => {
  const name = await environment('deleted');
  const client = clientOf();
  const session = await client.session({ environment: name, ...task });
  await session.call('add', { by: 1 });
  expect((await server.request('DELETE', `/v1/environments/${name}`)).status).toBe(200);
  // The sessions of a deleted environment end within seconds.
  await expect.poll(async () => (await client.sessions.get(session.sid)).state).toBe('lost');
  const lost = await session.call('add', { by: 1 }).catch((error: PalestraApiError) => error);
  expect(lost).toMatchObject({ name: 'SessionTerminatedError', failureClass: 'infrastructure', retryable: false });
  expect((lost as PalestraApiError).advice).toContain('leave this episode out of the figures');
  const again = await client.session({ environment: name, ...task }).catch((error: PalestraApiError) => error);
  expect(failureOf(again as PalestraApiError)).toEqual(['PalestraApiError', 'deployment_not_found', 'infrastructure', false]);
  expect((again as PalestraApiError).advice).toContain('renamed, deleted');
});

test('the service is unreachable for a moment: the call runs once, and what is recorded meanwhile is stored', async () => {
  const proxy = await startCuttingProxy(Number(new URL(server.url).port));
  onTestFinished(() => proxy.close());
  const client = clientOf(`http://127.0.0.1:${proxy.port}`);
  const session = await client.session({ environment: await environment('unreachable'), ...task });
  const rollout = await client.rollouts.start({ runName: 'unreachable' });
  const accept = proxy.refuse();
  proxy.cut();
  const running = session.call('add', { by: 5 });
  for (let index = 0; index < 5; index += 1) await rollout.log({ type: 'user_message', content: String(index) });
  // Creating a key is not repeated.
  await expect(client.keys.create('x').catch(failureOf)).resolves.toEqual(['ConnectionError', undefined, 'infrastructure', true]);
  accept();
  expect(await running).toMatchObject({ blocks: [{ text: 'now 5' }] });
  expect(await client.rollouts.flush()).toEqual({ stored: 6, unsent: 0, error: null });
  expect(await contents(rollout.id)).toEqual(['0', '1', '2', '3', '4']);
  await session.close();
});

import { PalestraClient } from '@palestra/client';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { testApiKey } from '../../support/palestra.ts';
import { type OldStore, type UpgradedStore, upgradeStore } from './old-store.world.ts';

/**
 * A store of the last version without hosting (migration 0048), which that version wrote over its API: a run of six rollouts, of which one
 * is not finished, an annotation, and two sessions of a bundled environment with two calls each: one ended, one open.
 */
interface StoreWithSessions extends OldStore {
  sessions: Record<'ended' | 'live', string>;
  /** Numbers of the versions of `palestra/echo`. */
  environment: { versions: number[] };
  run: { num_rollouts: number; num_scored: number; num_finished: number };
}
const SECRET_KEY = Buffer.alloc(32, 7).toString('base64');
vi.setConfig({ testTimeout: 120_000 });

let store: UpgradedStore<StoreWithSessions>;
let client: PalestraClient;
beforeAll(async () => {
  store = await upgradeStore({
    fixture: 'store-0048.json',
    lastMigration: '0048_search_lanes',
    // Its client is still there.
    change: (database) =>
      database
        .query(
          `UPDATE sessions SET last_seen_at = now(), last_request_at = now(), expires_at = now() + interval '5 minutes' WHERE ended_at IS NULL`,
        )
        .then(() => {}),
    config: { bundledEnvironments: true, secretKey: SECRET_KEY },
  });
  client = new PalestraClient({ url: store.server.url, apiKey: testApiKey });
}, 120_000);
afterAll(async () => {
  await client?.close();
  await store?.close();
});

const get = async (address: string): Promise<any> => {
  const { status, body } = await store.server.request('GET', address);
  if (status !== 200) throw new Error(`GET ${address}: ${status} ${JSON.stringify(body)}`);
  return body;
};
const inputs = async (sid: string): Promise<unknown[]> => {
  const found: unknown[] = [];
  for await (const { input } of client.sessions.calls(sid)) found.push(JSON.parse(input));
  return found;
};

test('runs, rollouts and annotations are as that version answered', async () => {
  const { old } = store;
  for (const [name, { id, reward, messages }] of Object.entries(old.rollouts)) {
    const now = await get(`/v1/rollouts/${id}`);
    expect(now, name).toMatchObject({ reward, messages });
    expect(now.messages).toHaveLength(messages.length);
  }
  const { num_rollouts, num_scored, num_finished } = old.run;
  expect(await get('/v1/runs/upgraded')).toMatchObject({ num_rollouts, num_scored, num_finished });
  expect((await get('/v1/runs/upgraded/search?q=needle')).hits).toHaveLength(1);
  expect((await get(`/v1/annotations?rollout=${old.rollouts['rollout-1']!.id}`)).annotations).toMatchObject([{ tag: 'kept' }]);
});

test('environments keep their versions', async () => {
  const { versions } = await get('/v1/environments/palestra/echo/versions');
  expect(versions.map(({ number }: { number: number }) => number)).toEqual(store.old.environment.versions);
});

test('an ended session is readable, and an open one goes on with its secrets', async () => {
  const { ended, live } = store.old.sessions;
  expect(await client.sessions.get(ended)).toMatchObject({ sid: ended, environment: 'palestra/echo' });
  expect(await inputs(ended)).toEqual([{ text: 'one' }, { text: 'two' }]);
  const session = client.attach(live);
  const { blocks } = await session.call('echo', { text: 'three' });
  expect(blocks).toMatchObject([{ text: 'three' }]);
  expect(await inputs(live)).toEqual([{ text: 'one' }, { text: 'two' }, { text: 'three' }]);
  await session.close();
});

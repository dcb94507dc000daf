import { expect, test } from 'vitest';
import { readConfig } from './config.ts';
import { atMost, InFlight, LIMITS, type Limits, readLimits } from './limits.ts';

const none = Object.fromEntries(Object.keys(LIMITS).map((name) => [name, { key: Infinity, org: Infinity }])) as Limits;
const ann = { orgId: 'acme', userId: 'ann', keyId: 'k1' };
const bob = { orgId: 'acme', userId: 'bob', keyId: null };
const eve = { orgId: 'evil', userId: 'eve', keyId: null };

test('a key and an organisation have separate limits', () => {
  const inFlight = new InFlight({ ...none, sockets: { key: 2, org: 3 } });
  const enter = (holder: typeof ann | typeof bob) => inFlight.enter('sockets', holder);
  const [first] = [enter(ann), enter(ann)];
  expect(() => enter(ann)).toThrow(/This API key has 2 WebSockets.*PALESTRA_MAX_SOCKETS_PER_KEY/);
  enter(bob);
  expect(() => enter(bob)).toThrow(/This organisation has 3.*PALESTRA_MAX_SOCKETS_PER_ORG/);
  enter(eve);
  inFlight.enter('streams', ann);
  first();
  // The second release does nothing.
  first();
  enter(ann);
  expect(() => enter(ann)).toThrow(expect.objectContaining({ code: 'limit_reached', status: 429 }));
});

test('waiting requests enter in their order as soon as there is room', async () => {
  const inFlight = new InFlight({ ...none, uploads: { key: 1, org: 10 } });
  const release = inFlight.enter('uploads', ann);
  const order: number[] = [];
  const wait = async (number: number) => {
    const done = await inFlight.enterWhenFree('uploads', ann, 60_000, 'ingest_overloaded');
    order.push(number);
    done();
  };
  const all = Promise.all([wait(1), wait(2), wait(3), wait(4)]);
  await expect(inFlight.enterWhenFree('uploads', ann, 60_000, 'ingest_overloaded')).rejects.toMatchObject({ code: 'ingest_overloaded' });
  release();
  await all;
  expect(order).toEqual([1, 2, 3, 4]);
  inFlight.enter('uploads', ann);
  await expect(inFlight.enterWhenFree('uploads', ann, 1, 'ingest_overloaded')).rejects.toMatchObject({ code: 'ingest_overloaded' });
});

test('limits have defaults that the operator can change', () => {
  const { limits } = readConfig({ PALESTRA_MAX_SOCKETS_PER_KEY: '7' }, (file) => file);
  expect(limits.sockets).toEqual({ key: 7, org: LIMITS.sockets.org });
  expect(limits.members).toEqual({ key: Infinity, org: LIMITS.members.org });
  for (const limit of Object.values(readLimits({ ...limits }))) expect(limit).toBeDefined();
});

test('an owner can lower a limit and not raise it', () => {
  expect([atMost(5, null), atMost(5, 3), atMost(5, 9), atMost(null, 9)]).toEqual([5, 3, 5, 9]);
});

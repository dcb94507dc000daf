import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientOf, deploy, type HostingWorld, instancesOf, livingOf, startHosting } from './hosting.world.ts';

/** Instances follow the demand: real PostgreSQL, real processes. */
let world: HostingWorld;

beforeAll(async () => {
  world = await startHosting();
  world.start();
});
afterAll(() => world?.close());

const states = async (deployed: Parameters<typeof instancesOf>[1]) =>
  (await livingOf(world, deployed)).map(({ state }) => state).toSorted();

describe('scaling', () => {
  test('a session wakes an environment without instances, and the last session lets it sleep again', async () => {
    const deployed = await deploy(world, 'sleeper', { idle_s: 0 });
    const { open, add, end } = clientOf(world);
    expect(await instancesOf(world, deployed)).toEqual([]);
    const sid = await open(deployed.name);
    expect(await add(sid)).toMatch(/^1:\d+:1$/);
    expect(await add(sid)).toMatch(/^1:\d+:2$/);
    expect(await states(deployed)).toEqual(['ready']);
    await end(sid);
    await expect.poll(() => states(deployed)).toEqual([]);
    const [row] = await instancesOf(world, deployed);
    expect(row).toMatchObject({ state: 'stopped', detail: 'It had no sessions.' });
    expect(world.engine.children.has(row!.id)).toBe(false);
  });
});

import { PalestraClient } from '@palestra/client';
import { newUuid } from '@palestra/kit';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { full } from '../../support/full.ts';
import { NONE, Players } from './crashes.world.ts';
import { engineCommand, TestEngine } from './docker-engine.world.ts';
import { folderWith, LIMITS, soon } from './docker-instances.world.ts';
import { deploy, type Deployed, type HostingWorld, livingOf, query, startHosting } from './hosting.world.ts';

const SESSIONS = full ? 256 : 64;
const CALL_MS = SESSIONS * 4;

/** Writes the id of each call to its log. */
const COUNTER = `
import { defineEnvironment, tool, z } from '@palestra/environment-kit';
export default defineEnvironment({
  name: 'counter',
  splits: ['train'],
  tasks: () => Array.from({ length: 10 }, (_, id) => ({ id })),
  create: () => ({ count: 0 }),
  prompt: () => 'Count.',
  tools: {
    add: tool({
      description: 'Adds one and returns the count.',
      input: z.object({ id: z.string(), pause_ms: z.number() }),
      run: async ({ id, pause_ms }, session) => {
        console.log('ran ' + id);
        await new Promise((resolve) => setTimeout(resolve, pause_ms));
        session.state.count += 1;
        return { content: '1:0:' + session.state.count, reward: 1 };
      },
    }),
  },
});
`;

describe.skipIf(engineCommand === undefined)('an engine that is killed', () => {
  let engine: TestEngine;
  let world: HostingWorld;
  beforeAll(async () => {
    [engine, world] = await Promise.all([TestEngine.start(), startHosting()]);
  });
  afterAll(async () => {
    await world?.close();
    await engine?.close();
  });

  const idsIn = (lines: readonly string[]) => lines.filter((line) => line.startsWith('ran ')).map((line) => line.slice(4));
  const ready = async (deployed: Deployed) => (await livingOf(world, deployed)).filter(({ state }) => state === 'ready');

  test(`during ${SESSIONS} sessions: calls go on, an instance that ends meanwhile is replaced, and no line of a log is lost`, async () => {
    const provider = engine.provider();
    const server = { command: 'node', args: ['{kit}', 'environment.mjs', '{host}', '{port}'], cwd: '.', variables: {} };
    const artifact = await provider.build(
      {
        deployId: newUuid(),
        sourceDigest: `sha256:${newUuid()}`,
        source: {
          kind: 'folder',
          folder: folderWith(engine, { 'environment.mjs': COUNTER }),
          plan: { kind: 'node', install: false, server },
        },
        buildArguments: {},
        limits: LIMITS,
      },
      () => {},
      soon(),
    );
    world.start([provider]);
    const settings = { min_warm: 2, max: 2, concurrency: SESSIONS, memory_mb: 256, egress: 'none' as const };
    const deployed = await deploy(world, 'contained', settings, artifact);
    await expect.poll(() => ready(deployed), { timeout: 60_000 }).toHaveLength(2);
    const [first, second] = await ready(deployed);
    const client = new PalestraClient({ url: world.server.url, apiKey: world.server.apiKey });
    const players = new Players(client, deployed.name, SESSIONS, CALL_MS);

    await players.answers(SESSIONS);
    await engine.kill();
    await players.answers(4 * SESSIONS);
    await engine.run();
    await players.answers(SESSIONS);
    expect(players.lost).toEqual([]);
    expect((await ready(deployed)).map(({ id }) => id)).toEqual([first!.id, second!.id]);

    await engine.kill();
    engine.ask('kill', `palestra-${first!.id}`);
    // Its last lines are in the log when it has ended.
    engine.ask('wait', `palestra-${first!.id}`);
    const dead = idsIn(engine.lines('logs', `palestra-${first!.id}`));
    await engine.run();
    await expect.poll(async () => (await ready(deployed)).filter(({ id }) => id !== first!.id), { timeout: 60_000 }).toHaveLength(2);
    await players.answers(SESSIONS);
    await players.end();

    const living = (await ready(deployed)).map(({ id }) => [id, idsIn(engine.lines('logs', `palestra-${id}`))] as const);
    expect(players.faults([...dead, ...living.flatMap(([, ids]) => ids)])).toEqual(NONE);
    expect(new Set(players.lost)).toEqual(new Set(['session_lost']));
    const ended = await query(world, 'SELECT state, failure_class FROM sessions WHERE admitted_at IS NOT NULL GROUP BY 1, 2 ORDER BY 1');
    expect(ended).toEqual([
      { state: 'closed', failure_class: 'ok' },
      { state: 'lost', failure_class: 'infrastructure' },
    ]);
    const stored = async (id: string) =>
      idsIn(
        (await query<{ text: string }>(world, 'SELECT text FROM hosting_logs WHERE source_id = $1 ORDER BY seq', [id])).map(
          ({ text }) => text,
        ),
      );
    for (const [id, ids] of [...living, [first!.id, dead] as const]) await expect.poll(() => stored(id)).toEqual(ids);

    await world.server.request('DELETE', `/v1/environments/${deployed.name}`);
    await expect.poll(() => engine.leftovers(), { timeout: 60_000 }).toEqual([]);
  }, 300_000);
});

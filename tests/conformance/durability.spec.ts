import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientEnv } from './support/client-env.ts';
import { type CuttingProxy, startCuttingProxy } from '../support/cutting-proxy.ts';
import { addRemote, type Palestra, startPalestra } from '../support/palestra.ts';
import { runScript, startUpstream, type Upstream } from './support/python.ts';

/** `kill -9` of the service in the middle of an episode: the same client goes on, and no tool ran twice. */
describe('kill -9 in the middle of a tool call', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-durability-'));
  const countFile = path.join(folder, 'count');
  let palestra: Palestra;
  /** As a load balancer does, it holds connections while the service restarts: the SDK gives up after five that are refused. */
  let proxy: CuttingProxy;
  let upstream: Upstream;
  let deployment: string;
  let database: pg.Client;

  beforeAll(async () => {
    palestra = await startPalestra();
    proxy = await startCuttingProxy(palestra.port);
    upstream = await startUpstream({
      interpreter: 'v167',
      module: 'counting_environment',
      classes: ['CountingEnv'],
      env: { COUNT_FILE: countFile },
    });
    deployment = await addRemote(palestra, 'counting', upstream.url);
    database = new pg.Client({ connectionString: palestra.databaseUrl! });
    await database.connect();
  });
  afterAll(async () => {
    await database?.end();
    await proxy?.close();
    await palestra?.stop();
    await upstream?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const notes = () => (existsSync(countFile) ? readFileSync(countFile, 'utf8').trim().split('\n') : []);
  async function waitForStarts(count: number): Promise<void> {
    const deadline = Date.now() + 150_000;
    while (notes().filter((line) => line === 'start').length < count) {
      if (Date.now() > deadline) throw new Error(`the tool did not start ${count} times: ${notes().join(' ')}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  test('the call is finished once and its result arrives; the rollout is whole', { timeout: 400_000 }, async () => {
    const episode = runScript(
      'v167',
      'long_episode.py',
      [deployment],
      clientEnv({ ...palestra, url: `http://127.0.0.1:${proxy.port}` }),
    ) as Promise<{
      results: { text: string; reward: number }[];
      rollout: string;
    }>;
    // An early failure of the script must not be reported as an unhandled rejection while we wait.
    episode.catch(() => {});
    await waitForStarts(2);
    // The SDK flushes after a second and drops what it cannot send; what was acknowledged before the kill must be there.
    const uploaded = async () => (await database.query('SELECT count(*)::int AS n FROM rollout_messages')).rows[0].n as number;
    await expect.poll(uploaded).toBe(1);
    // It is in the middle.
    expect(notes()).toEqual(['start', 'end', 'start']);
    const release = proxy.hold();
    await palestra.kill();
    await palestra.restart();
    release();
    writeFileSync(`${countFile}.end`, '');
    const { results, rollout } = await episode;
    expect(results.map(({ text }) => text)).toEqual(['worked False', 'worked True', 'worked False']);
    expect(notes()).toEqual(['start', 'end', 'start', 'end', 'start', 'end']);

    const answer = await fetch(`${palestra.url}/v1/rollouts/${rollout}`, { headers: { 'x-api-key': palestra.apiKey } });
    const stored = (await answer.json()) as { messages: { content: string; reward: number }[] };
    expect(stored.messages.map(({ content }) => content)).toEqual(['worked False', 'worked True', 'worked False']);
  });
});

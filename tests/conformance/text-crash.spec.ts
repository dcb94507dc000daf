import { afterAll, beforeAll, expect, test } from 'vitest';
import { serve } from '@palestra/environment-kit';
import { addRemote, type Palestra, startPalestra } from '../support/palestra.ts';
import { requestText } from './support/text-requests.ts';
import { executions, gates, textEnvironments } from '../support/text-environments.ts';

/** `kill -9` of the API between a step and its answer: the same turn again has the one outcome, and the tool has run once. */
let palestra: Palestra;
let running: Awaited<ReturnType<typeof serve>>;
let environment: string;

beforeAll(async () => {
  running = await serve(textEnvironments);
  palestra = await startPalestra();
  environment = await addRemote(palestra, 'texts', running.url);
});
afterAll(async () => {
  await palestra?.stop();
  await running?.close();
});

const request = (method: string, where: string, body?: object) => requestText(palestra, method, where, body);
const open = async () =>
  (await request('POST', '', { environment, variant: 'abacus', split: 'train', index: 0, max_turns: 100 })).body.id as string;
const call = (name: string) => `<tool_call>{"name": "${name}", "arguments": {}}</tool_call>`;
const step = (id: string, turn: number, name: string) => request('POST', `/${id}/step`, { text: call(name), turn });
const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test('while the tool runs', async () => {
  const id = await open();
  let starts = 0;
  const idle = () => {};
  gates.open = idle;
  const cut = step(id, 1, 'wait').catch(() => null);
  while (gates.open === idle) await after(10);
  starts += 1;
  const end = gates.open;
  await palestra.kill();
  expect(await cut).toBeNull();
  await palestra.restart();
  const again = step(id, 1, 'wait');
  await after(300);
  // Nothing has begun it anew.
  expect(gates.open).toBe(end);
  end();
  expect(await again).toMatchObject({
    status: 200,
    body: { turn: 1, observations: [{ content: '<tool_response>\nwaited\n</tool_response>' }] },
  });
  expect(starts).toBe(1);
  expect((await request('GET', `/${id}/metrics`)).body).toEqual({ turns: 1, total_reward: 0, num_rewards: 1 });
});

test('at any moment, with equal texts turn after turn', async () => {
  const id = await open();
  const before = executions.count;
  const moments = [2, 6, 10, 15, 25];
  const lost = [];
  for (const [index, moment] of moments.entries()) {
    const turn = index + 1;
    const cut = step(id, turn, 'count').catch(() => null);
    await after(moment);
    await palestra.kill();
    const seen = await cut;
    await palestra.restart();
    const again = await step(id, turn, 'count');
    const observations = [{ content: `<tool_response>\ncount ${turn}\n</tool_response>` }];
    expect(again).toMatchObject({ status: 200, body: { turn, reward: 1, observations } });
    if (seen === null) lost.push(moment);
    else expect(again).toEqual(seen);
  }
  expect(lost.length).toBeGreaterThan(0);
  expect(executions.count).toBe(before + moments.length);
  expect((await request('GET', `/${id}/metrics`)).body).toEqual({ turns: 5, total_reward: 5, num_rewards: 5 });
  expect(await request('DELETE', `/${id}`)).toMatchObject({ status: 200 });
});

import { randomBytes } from 'node:crypto';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { defineEnvironment, serve, tool } from '@palestra/environment-kit';
import { freePort } from '@palestra/hosting';
import type { SessionView } from '@palestra/protocol';
import { addRemote, type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { launch, openPage, shoot, type View, visit } from './browser.ts';
import { apiOf } from './playground.environments.ts';
import { messageEvents, type UploadedMessage, uploadEvents, uploadRollout } from './upload.ts';

/** What a page shows is what there is, also where it changes while the page is open: by itself where ADR 17 lets it, else behind a pill. */
let palestra: SharedPalestra;
let browser: Browser;
let running: Awaited<ReturnType<typeof serve>>;
const light: View = { width: 1280, theme: 'light' };
vi.setConfig({ testTimeout: 120_000 });
/** What stands around a rollout is read again this often, and a busy machine takes its time, ms. */
const AROUND = 40_000;

let goOn: () => void;
const bench = defineEnvironment({
  name: 'bench',
  splits: ['train'],
  tasks: () => [{ n: 0 }],
  prompt: () => 'Work.',
  tools: {
    file: tool({
      description: 'Takes its time.',
      input: z.object({ text: z.string() }),
      run: async () => {
        await new Promise<void>((resolve) => (goOn = resolve));
        return 'filed at last';
      },
    }),
    tap: { description: 'Taps.', run: () => 'tapped' },
  },
});

const api = apiOf(() => palestra);
const open = async (run?: string): Promise<string> => {
  const body = { environment: `${palestra.namespace}/bench`, split: 'train', index: 0, ...(run && { run: { name: run, step: 1 } }) };
  return (await api<SessionView>('POST', '/v1/sessions', body)).sid;
};
const call = (sid: string, name: string, input: object = {}) => api('POST', '/call', { name, input }, sid);

beforeAll(async () => {
  running = await serve([bench]);
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  await addRemote(palestra, 'bench', running.url);
});
afterAll(async () => {
  await running?.close();
});

const said = (content: string, more: Partial<UploadedMessage> = {}): UploadedMessage => ({ type: 'assistant_message', content, ...more });
const looked = (id: string, place: string): UploadedMessage[] => [
  { type: 'tool_call', name: 'look', callId: id, content: JSON.stringify({ place }) },
  { type: 'tool_result', callId: id, content: `nothing in the ${place}` },
];

test('calls that a rollout gets while it is read bear the word of the ledger', async () => {
  const sid = await open('recorded while it is read');
  await call(sid, 'tap');
  const { recording } = await api<SessionView>('GET', `/v1/sessions/${sid}`);
  const rollout = recording!.rollout_id;
  await expect
    .poll(() => fetch(`${palestra.url}/v1/rollouts/${rollout}`, { headers: { 'x-api-key': palestra.apiKey } }).then(({ status }) => status))
    .toBe(200);
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/rollout/${rollout}`, 'tapped');
  const told = page.getByRole('feed', { name: 'Transcript' }).getByTitle('This call is in the session ledger');
  const durations = page.getByRole('feed', { name: 'Transcript' }).getByTitle('Latency of the call, from the session ledger');
  await expect.poll(() => told.count(), { timeout: AROUND }).toBe(1);
  await call(sid, 'tap');
  await call(sid, 'tap');
  await expect.poll(() => told.count(), { timeout: AROUND }).toBe(3);
  await expect.poll(() => durations.count(), { timeout: AROUND }).toBe(3);
  expect(complaints).toEqual([]);
  await close();
});

test('what a rollout lacks is shown where it is missing once it had its time to come', async () => {
  const rollout = await uploadRollout(palestra, { runName: 'lost on the way', task: 1, step: 1, messages: [said('begun')] });
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/rollout/${rollout}`, 'begun');
  // The page is open before the message after the lost one comes, so it is open before the grace (vitest.config.ts) ends.
  await uploadEvents(palestra, messageEvents(rollout, [said('went on')], 2));
  await page.getByText('went on').first().waitFor({ timeout: AROUND });
  await page.getByText('1 message is missing (1)').waitFor({ timeout: AROUND });
  await page.getByRole('button', { name: '1 missing' }).waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test('the group around a rollout grows, and what differs from its best sample is compared anew when its reader asks', async () => {
  const group = { runName: 'grows', task: 1, step: 3 };
  const best = await uploadRollout(palestra, {
    ...group,
    sample: 0,
    messages: [...looked('a', 'hall'), ...looked('b', 'attic'), said('found', { reward: 1, isFinished: true })],
  });
  const id = await uploadRollout(palestra, { ...group, sample: 1, messages: looked('a', 'hall') });
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/rollout/${id}?diff=${best}`, 'first divergence');
  await page.getByText('sample 1 of 2').waitFor({ timeout: AROUND });
  const panel = page.getByRole('complementary', { name: 'Difference' });
  await panel.getByText('no further action').first().waitFor();
  const before = await panel.getByRole('region', { name: 'Actions of both, side by side' }).innerText();
  await uploadRollout(palestra, { ...group, sample: 2, messages: [said('late', { reward: 0, isFinished: true })] });
  await uploadEvents(palestra, messageEvents(id, looked('c', 'cellar'), 2));
  await page.getByText('sample 1 of 3').waitFor({ timeout: AROUND });
  const pill = panel.getByRole('button', { name: '2 new' });
  await pill.waitFor({ timeout: AROUND });
  expect(await panel.getByRole('region', { name: 'Actions of both, side by side' }).innerText()).toBe(before);
  await pill.click();
  await panel.getByText('cellar').first().waitFor();
  await pill.waitFor({ state: 'detached' });
  expect(complaints).toEqual([]);
  await close();
});

test('a group that is read again shows what its samples did since', async () => {
  const runName = `lanes ${randomBytes(4).toString('hex')}`;
  const group = { runName, task: 2, step: 1 };
  await uploadRollout(palestra, {
    ...group,
    sample: 0,
    messages: [...looked('a', 'hall'), said('found', { reward: 1, isFinished: true })],
  });
  const id = await uploadRollout(palestra, { ...group, sample: 1, messages: looked('a', 'hall') });
  // Rows that are read stay as they were: the page begins with both.
  const path = encodeURIComponent(runName);
  const groups = () => api<{ groups: { received: number }[] }>('GET', `/v1/runs/${path}/groups`);
  await expect.poll(async () => (await groups()).groups.map(({ received }) => received)).toEqual([2]);
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/${palestra.namespace}/runs/${path}/groups`, runName);
  await page.getByRole('table', { name: 'Groups' }).locator('[data-row]').first().click();
  const lanes = page.getByRole('table', { name: 'Samples side by side' });
  await lanes.getByText('hall').nth(1).waitFor();
  const pill = page.getByRole('button', { name: 'figures changed: refresh' });
  await uploadEvents(palestra, messageEvents(id, looked('b', 'cellar'), 2));
  await pill.waitFor({ timeout: AROUND });
  expect(await lanes.getByText('cellar').count()).toBe(0);
  await pill.click();
  await lanes.getByText('cellar').first().waitFor();
  await pill.waitFor({ state: 'detached' });
  await uploadRollout(palestra, { ...group, sample: 2, messages: looked('a', 'porch') });
  const fresh = page.getByRole('button', { name: '1 new', exact: true });
  await fresh.waitFor({ timeout: AROUND });
  expect(await lanes.getByRole('columnheader').count()).toBe(3);
  await fresh.click();
  await lanes.getByText('porch').first().waitFor();
  await fresh.waitFor({ state: 'detached' });
  expect(complaints).toEqual([]);
  await close();
});

test('pages of a run and of a rollout that somebody deletes say so by themselves', async () => {
  const runName = 'deleted elsewhere';
  const rollout = { runName, step: 1, messages: [said('still here', { reward: 1, isFinished: true })] };
  const id = await uploadRollout(palestra, { ...rollout, task: 1 });
  await uploadRollout(palestra, { ...rollout, task: 2 });
  const { page, close } = await openPage(browser, palestra, light);
  const runPage = await page.context().newPage();
  await visit(page, `${palestra.url}/rollout/${id}`, 'still here');
  await visit(runPage, `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(runName)}`, 'rollouts of');
  await api('DELETE', `/v1/rollouts/${id}`);
  await page.getByText('This rollout was deleted').waitFor({ timeout: AROUND });
  await shoot(page, 'rollout-deleted-1280-light');
  expect(await runPage.getByText('This run was deleted').count()).toBe(0);
  await api('DELETE', `/v1/runs/${encodeURIComponent(runName)}`);
  await runPage.getByText('This run was deleted').waitFor({ timeout: AROUND });
  await shoot(runPage, 'run-deleted-1280-light');
  await close();
});

test('the samples of a task are read again with its figures', async () => {
  const sample = (index: number) => ({
    runName: 'task of samples',
    task: 4,
    step: 1,
    sample: index,
    messages: [said(`sample ${index}`, { reward: index / 10, isFinished: true })],
  });
  await uploadRollout(palestra, sample(1));
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent('task of samples')}/tasks`, 'task of samples');
  await page.getByRole('table', { name: 'Tasks of the run' }).locator('[data-row]').first().click();
  await page.getByRole('button', { name: 'Steps side by side' }).click();
  const rows = page.getByRole('region', { name: 'Step 1' }).locator('[data-row]');
  await expect.poll(() => rows.count()).toBe(1);
  await uploadRollout(palestra, sample(2));
  const pill = page.getByRole('button', { name: 'figures changed: refresh' });
  await pill.waitFor({ timeout: AROUND });
  expect(await rows.count()).toBe(1);
  await pill.click();
  await expect.poll(() => rows.count()).toBe(2);
  await pill.waitFor({ state: 'detached' });
  await uploadRollout(palestra, { ...sample(3), step: 2 });
  const fresh = page.getByRole('button', { name: '1 new', exact: true });
  await fresh.waitFor({ timeout: AROUND });
  expect(await page.getByRole('region', { name: 'Step 2' }).count()).toBe(0);
  await fresh.click();
  await page.getByRole('region', { name: 'Step 2' }).locator('[data-row]').first().waitFor();
  await fresh.waitFor({ state: 'detached' });
  expect(complaints).toEqual([]);
  await close();
});

test.each(['session', 'playground'])('a long call that was read whole while it ran shows its result: %s', async (where) => {
  const sid = await open();
  const text = randomBytes(40_000).toString('hex');
  const calling = call(sid, 'file', { text });
  const { page, complaints, close } = await openPage(browser, palestra, light);
  if (where === 'session') {
    await visit(page, `${palestra.url}/sessions/${sid}`, 'running');
    await page.getByRole('list', { name: 'Calls in order' }).getByRole('button', { name: /file/ }).click();
    await page.getByRole('button', { name: /^Load all/ }).click();
    await page.getByRole('button', { name: /^Load all/ }).waitFor({ state: 'detached' });
    await page.getByText('No result yet').waitFor();
  } else {
    const read = page.waitForResponse((answer) => /\/calls\/[^/?]+$/.test(answer.url()));
    await visit(page, `${palestra.url}/environments/${palestra.namespace}/bench/play?sid=${sid}`, 'bench');
    await read;
    await page.getByRole('listitem', { name: 'Call 1: file' }).getByText('running').waitFor();
  }
  goOn();
  await calling;
  await page.getByText('filed at last').last().waitFor();
  await expect.poll(() => page.getByText('No result yet').count()).toBe(0);
  expect(complaints.filter((one) => !one.startsWith(`request to blob:${palestra.url}/`))).toEqual([]);
  await close();
});

test('an environment that comes up while its page is open says so, and what it offers', async () => {
  // A port that nothing else gets between the two servers.
  const first = await serve([bench], { port: await freePort() });
  await addRemote(palestra, 'sleeper', first.url);
  await first.close();
  const path = `/v1/environments/${palestra.namespace}/sleeper`;
  await expect.poll(() => api('GET', path), { timeout: AROUND }).toMatchObject({ status: 'unreachable' });
  const { page, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/environments/${palestra.namespace}/sleeper?tab=tools`, 'unreachable');
  const again = await serve([bench], { port: first.port });
  await page.locator('header').getByText('ready').waitFor({ timeout: AROUND });
  await page.getByText('Takes its time.').first().waitFor();
  await close();
  await again.close();
});

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineEnvironment, serve, tool } from '@palestra/environment-kit';
import type { SessionView } from '@palestra/protocol';
import { z } from 'zod';
import { addRemote, type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { expectSound, launch, openPage, shoot, type View, visit } from './browser.ts';
import { startDeployed } from './hosting.data.ts';
import { type UploadedMessage, uploadRollout } from './upload.ts';

/** What must be read is not cut: figures in a window of 1280 px, controls in one as narrow as a phone. */
const RUN = 'narrow suite';
const TOOL = 'interview_the_head_gardener';
let palestra: SharedPalestra;
let browser: Browser;
let running: Awaited<ReturnType<typeof serve>>;
let rollout: string;
let deployed: Awaited<ReturnType<typeof startDeployed>>;
const light: View = { width: 1280, theme: 'light' };

const garden = defineEnvironment({
  name: 'garden',
  splits: ['train'],
  tasks: () => [{}],
  prompt: () => 'Who cut the roses?',
  tools: { [TOOL]: tool({ description: 'Asks.', input: z.object({}), run: () => 'The butler did.' }) },
});

async function playOnce(): Promise<void> {
  const environment = await addRemote(palestra, 'garden', running.url);
  const headers = { 'x-api-key': palestra.apiKey, 'content-type': 'application/json' };
  const post = (path: string, body: object, more = {}) =>
    fetch(palestra.url + path, { method: 'POST', headers: { ...headers, ...more }, body: JSON.stringify(body) });
  const { sid } = (await (await post('/v1/sessions', { environment, split: 'train', index: 0 })).json()) as SessionView;
  await (await post('/call', { name: TOOL, input: {} }, { 'x-session-id': sid })).text();
  await fetch(`${palestra.url}/v1/sessions/${sid}`, { method: 'DELETE', headers: { 'x-api-key': palestra.apiKey } });
}

beforeAll(async () => {
  running = await serve([garden]);
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  // Less from step to step: a change with its sign.
  for (let step = 0; step < 20; step += 1)
    rollout = await uploadRollout(palestra, {
      runName: RUN,
      rolloutName: 'a-name-of-a-rollout-that-is-rather-long-for-a-narrow-window',
      step,
      sample: 0,
      n: 4,
      messages: [{ type: 'assistant_message', content: 'hello', reward: -0.37 * step, isFinished: true }],
    });
  await playOnce();
  deployed = await startDeployed(palestra);
});
afterAll(async () => {
  await deployed?.close();
  await running?.close();
});

test('lists show their figures whole at 1280 px', async () => {
  const { page, close } = await openPage(browser, palestra, light);
  const cut = (text: RegExp) =>
    page
      .getByText(text)
      .first()
      .evaluate((element) => {
        for (let at: Element | null = element; at && at.getAttribute('role') !== 'row'; at = at.parentElement)
          if (at.scrollWidth > at.clientWidth && getComputedStyle(at).overflowX !== 'visible') return true;
        return false;
      });
  await visit(page, `${palestra.url}/${palestra.namespace}/runs`, RUN);
  expect(await cut(/^▼?\s*−3\.70$/)).toBe(false);
  await visit(page, `${palestra.url}/sessions?tab=ended`, TOOL);
  expect(await cut(/ago$/)).toBe(false);
  const age = page.getByRole('cell').filter({ hasText: TOOL }).getByText(/ago$/);
  const [inside, cell] = await Promise.all([age.boundingBox(), age.locator('xpath=ancestor::*[@role="cell"]').boundingBox()]);
  expect(inside!.x + inside!.width).toBeLessThanOrEqual(cell!.x + cell!.width);
  // Of those that are expected: the others of this group never came.
  await visit(page, `${palestra.url}/rollout/${rollout}`, 'sample 0 of 4');
  await close();
});

/** Controls of the page, not of its tables, that lie over each other or beyond the window. */
const collisions = (page: Page) =>
  page.evaluate(() => {
    const controls = [...document.querySelectorAll('header :is(a, h1, button), main :is(input, select, button)')].filter(
      (element) => element.checkVisibility() && !element.closest('[role=table], [role=feed], aside, form'),
    );
    const boxes = controls.map((element) => ({ name: element.textContent || element.ariaLabel, box: element.getBoundingClientRect() }));
    const beyond = boxes.filter(({ box }) => box.right > innerWidth + 1 || box.left < -1);
    const over = boxes.filter(({ box }, i) =>
      boxes
        .slice(i + 1)
        .some(
          ({ box: other }) =>
            box.left < other.right - 1 && other.left < box.right - 1 && box.top < other.bottom - 1 && other.top < box.bottom - 1,
        ),
    );
    return { beyond: beyond.map(({ name }) => name), over: over.map(({ name }) => name) };
  });

test('a window as narrow as a phone keeps every control in reach', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await page.setViewportSize({ width: 380, height: 800 });
  const run = `/${palestra.namespace}/runs/${encodeURIComponent(RUN)}`;
  for (const [name, path, text] of [
    ['explorer', `${run}/rollouts`, 'of 20 rollouts'],
    ['rollout', `/rollout/${rollout}`, 'hello'],
    ['sessions', '/sessions?tab=ended', 'garden'],
    ['channels', deployed.page('tab=versions'), 'stable'],
    ['log', deployed.page('tab=logs'), 'Follow'],
    ['settings', deployed.page('tab=settings'), 'Repository URL'],
  ] as const) {
    await visit(page, palestra.url + path, text);
    await expect.poll(() => page.locator('[aria-busy=true]').count()).toBe(0);
    await expectSound(page);
    expect(await collisions(page), name).toEqual({ beyond: [], over: [] });
    if (name === 'explorer') expect((await page.getByRole('combobox', { name: 'Query' }).boundingBox())!.width).toBeGreaterThan(300);
    await shoot(page, `narrow-${name}-380-light`);
  }
  expect(complaints).toEqual([]);
  await close();
});

test('the tables of a phone have the columns that fit, and do not scroll sideways', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await page.setViewportSize({ width: 390, height: 844 });
  const environment = `/environments/${palestra.namespace}/garden`;
  for (const path of [
    '/environments',
    ...['tasks', 'versions'].map((tab) => `${environment}?tab=${tab}`),
    ...['deploys', 'instances'].map((tab) => deployed.page(`tab=${tab}`)),
    '/sessions?tab=ended',
    '/keys',
    `/${palestra.namespace}/runs`,
    ...['rollouts', 'groups', 'tasks'].map((of) => `/${palestra.namespace}/runs/${encodeURIComponent(RUN)}/${of}`),
    ...['members', 'browsers', 'audit'].map((tab) => `/settings?tab=${tab}`),
  ]) {
    await page.goto(palestra.url + path, { waitUntil: 'domcontentloaded' });
    const row = page.getByRole('table').getByRole('row').nth(1);
    await row.waitFor();
    await expectSound(page);
    const beyond = await page
      .getByRole('table')
      .evaluateAll((tables) => tables.map((table) => table.getBoundingClientRect().right - innerWidth));
    expect(Math.max(...beyond), path).toBeLessThanOrEqual(0);
    expect((await row.getByRole('cell').last().boundingBox())!.width, path).toBeGreaterThan(0);
  }
  expect(complaints).toEqual([]);
  await close();
});

test('a phone shows the whole cause of a failure: call and error, missing call or result, limit, lost session', async () => {
  const call = (name: string): UploadedMessage => ({ type: 'tool_call', name, callId: 'c0', content: '{}' });
  const error = (content: string): UploadedMessage => ({
    type: 'tool_result',
    callId: 'c0',
    content,
    metadata: { is_error: true },
  });
  const argument = "TypeError: accuse() got an unexpected keyword argument 'the_person_who_probably_did_it' beside 'suspect'";
  const last: UploadedMessage = { type: 'assistant_message', content: 'It was the butler, I think.' };
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await page.setViewportSize({ width: 390, height: 844 });
  for (const [stop, messages, cause] of [
    ['finished', [call('accuse'), error(argument)], `accuse failed: ${argument}`],
    ['no_tool_call', [last], 'the last message did not call a tool'],
    ['max_turns', [last], 'the rollout reached its limit of turns'],
    ['infra_error', [call('search'), error('session_lost: the backend died')], 'search failed: session_lost: the backend died'],
    ['timeout', [call('search')], 'search got no result: a call took too long'],
  ] as const) {
    const id = await uploadRollout(palestra, { runName: RUN, step: 20, metadata: { stop_reason: stop }, messages: [...messages] });
    await page.goto(`${palestra.url}/rollout/${id}`);
    await page.getByLabel('Cause').getByText(cause).waitFor();
    const cut = await page
      .getByLabel('Cause')
      .evaluate((line) =>
        [line, ...line.querySelectorAll('*')].some(
          (one) => one.getBoundingClientRect().right > innerWidth || (one.clientWidth > 0 && one.scrollWidth > one.clientWidth),
        ),
      );
    expect({ stop, cut }).toEqual({ stop, cut: false });
    await shoot(page, `narrow-cause-${stop}-390-light`);
  }
  expect(complaints).toEqual([]);
  await close();
});

test('a phone shows why a rollout ended, and every part of it as a tab', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await page.setViewportSize({ width: 390, height: 844 });
  await visit(page, `${palestra.url}/rollout/${rollout}`, 'hello');
  const tab = (name: string) => page.getByRole('tab', { name, exact: true });
  expect(await tab('Transcript').getAttribute('aria-selected')).toBe('true');
  const stop = (await page.getByText('Stop reason', { exact: true }).first().boundingBox())!;
  expect(stop.x + stop.width).toBeLessThan(390);
  for (const [name, text] of [
    ['Task', 'Task spec'],
    ['Tools', 'Session ledger'],
    ['Outcome', 'Grading'],
  ] as const) {
    await tab(name).click();
    await page.getByRole('tabpanel').getByText(text).first().waitFor();
    await expectSound(page);
  }
  // A reward leads to its message.
  await page.getByRole('tabpanel').getByRole('button', { name: /#0/ }).first().click();
  await page.getByRole('feed', { name: 'Transcript' }).getByText('hello').waitFor();
  expect(await tab('Transcript').getAttribute('aria-selected')).toBe('true');
  expect(complaints).toEqual([]);
  await close();
});

test('on a phone a side panel of the explorer has the whole width, and opens alone', async () => {
  const { page, close } = await openPage(browser, palestra, light);
  await page.setViewportSize({ width: 390, height: 844 });
  await visit(page, `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(RUN)}/rollouts`, 'Views');
  const widthOf = (name: string) => page.getByRole('complementary', { name }).evaluateAll(([panel]) => panel?.clientWidth ?? 0);
  const widths = async () => [await widthOf('Facets'), await widthOf('Preview of the rollout')];
  expect(await widths()).toEqual([0, 0]);
  await page.getByRole('button', { name: 'Facets', exact: true }).click();
  await expect.poll(widths).toEqual([389, 0]);
  await page.getByRole('button', { name: 'Preview', exact: true }).click();
  await expect.poll(widths).toEqual([0, 389]);
  await page.getByRole('button', { name: 'Preview', exact: true }).click();
  await expect.poll(widths).toEqual([0, 0]);
  await close();
});

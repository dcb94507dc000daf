import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { defineEnvironment, serve, tool } from '@palestra/environment-kit';
import type { SessionView } from '@palestra/protocol';
import { addRemote, type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { hostile, terminal } from './rollouts.data.ts';
import { expectSound, expectSoundInEveryView, launch, loaded, openPage, shoot, type View, visit } from './browser.ts';

/** The pages of sessions with real sessions: playing, failed, ended, waiting. */
let palestra: SharedPalestra;
let browser: Browser;
let running: Awaited<ReturnType<typeof serve>>;
let ids: { playing: string; failed: string; ended: string };
const light: View = { width: 1280, theme: 'light' };

const shop = defineEnvironment<{ broken: boolean }>({
  name: 'shop',
  splits: ['train'],
  tasks: () => [{ broken: false }, { broken: true }],
  setup: ({ task }) => {
    if (task.broken) throw new Error('the warehouse database refused the connection');
  },
  prompt: () => 'Buy the cheapest lamp.',
  tools: {
    search: tool({
      description: 'Finds goods.',
      input: z.object({ query: z.string() }),
      run: ({ query }) => ({
        content: `3 goods match “${query}”:\n1. desk lamp, 19.90\n2. floor lamp, 49.00\n3. torch, 9.50`,
        reward: 0.1,
      }),
    }),
    pay: { description: 'Pays.', run: () => Promise.reject(new Error('payment gateway: connection reset by peer')) },
    page: { description: 'A long page.', run: () => 'lorem ipsum '.repeat(9_000) },
  },
});

const api = async <T>(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<T> => {
  const answer = await fetch(palestra.url + path, {
    method,
    headers: { 'x-api-key': palestra.apiKey, ...(body && { 'content-type': 'application/json' }), ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return (text.startsWith('{') ? JSON.parse(text) : text) as T;
};
const open = async (environment: string, index = 0, run?: string): Promise<string> => {
  const body = { environment, split: 'train', index, ...(run && { run: { name: run, step: 12, rollout: `${run}-${index}` } }) };
  return (await api<SessionView>('POST', '/v1/sessions', body)).sid;
};
const call = (sid: string, name: string, input: object) => api('POST', '/call', { name, input }, { 'x-session-id': sid });

beforeAll(async () => {
  running = await serve([shop]);
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  const environment = await addRemote(palestra, 'shop', running.url);
  await api('PUT', `/v1/environments/${environment}/details`, { sessions: { capacity: 3, heartbeat_timeout_s: 600 } });
  const playing = await open(environment, 0, 'shop-grpo-7b');
  await call(playing, 'search', { query: 'lamp' });
  await call(playing, 'search', { query: 3 });
  await call(playing, 'pay', {});
  await call(playing, 'page', {});
  await call(playing, 'search', { query: 'torch' });
  const failed = await open(environment, 1);
  await api('GET', '/prompt', undefined, { 'x-session-id': failed });
  const ended = await open('palestra/echo', 3, 'echo-baseline');
  for (const text of ['one', 'two', 'three']) await call(ended, 'echo', { text });
  await api('DELETE', `/v1/sessions/${ended}`);
  await open(environment);
  void open(environment, 0, 'shop-grpo-7b').catch(() => {});
  for (let index = 0; index < 4; index += 1) await open('palestra/math', index, 'math-sft');
  ids = { playing, failed, ended };
});
afterAll(async () => {
  await running?.close();
});

const pages = (): [name: string, path: string, text: string][] => [
  ['sessions', '/sessions', ids.playing.slice(0, 8)],
  ['sessions-ended', '/sessions?tab=ended', ids.ended.slice(0, 8)],
  ['sessions-slots', '/sessions?tab=slots', '3 of 3 slots taken'],
  ['session', `/sessions/${ids.playing}`, 'payment gateway'],
  ['session-failed', `/sessions/${ids.failed}`, 'The environment failed to set up the episode'],
  ['environment-sessions', `/environments/${palestra.namespace}/shop`, '3 of 3 slots taken'],
];

test('the pages of sessions are sound and accessible in every view', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  for (const [name, path, text] of pages()) {
    await visit(page, palestra.url + path, text);
    if (name === 'session') await page.getByRole('button', { name: /lamp/ }).first().click();
    await expectSoundInEveryView(page, name, { axe: true });
  }
  expect(complaints).toEqual([]);
  await close();
}, 300_000);

test('tool names, arguments and results of a model are shown as text', async () => {
  const sid = await open('palestra/echo', 11);
  await call(sid, hostile.slice(0, 60), { text: hostile });
  await call(sid, 'echo', { text: `${hostile}${terminal}` });
  const { page, complaints, close } = await openPage(browser, palestra, light);
  for (const path of [`/sessions/${sid}`, '/sessions', '/sessions?tab=slots']) {
    await visit(page, palestra.url + path, path.includes(sid) ? 'policy' : sid.slice(0, 8));
    const folded = page.locator('main button[data-row][aria-expanded=false]');
    while ((await folded.count()) > 0) await folded.first().click();
    await loaded(page);
    await expectSound(page);
  }
  expect(await page.evaluate(() => (globalThis as { pwned?: unknown }).pwned)).toBeUndefined();
  expect(complaints).toEqual([]);
  await close();
});

test('a recorded session links to its run and its rollout', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/sessions/${ids.ended}`, 'echo-baseline');
  await page.getByRole('link', { name: 'echo-baseline-3' }).click();
  await page.waitForURL(/\/rollout\//);
  await page.getByText('three').first().waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test('a second click ends a session in the list', async () => {
  const sid = await open('palestra/echo', 7);
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/sessions?environment=palestra%2Fecho`, sid.slice(0, 8));
  await page.getByRole('button', { name: `End session ${sid.slice(0, 8)}` }).click();
  await shoot(page, 'sessions-end-1280-light');
  expect((await api<SessionView>('GET', `/v1/sessions/${sid}`)).live).toBe(true);
  await page.getByRole('button', { name: `End ${sid.slice(0, 8)} now` }).click();
  await page.getByRole('link', { name: sid.slice(0, 8) }).waitFor({ state: 'detached' });
  await expect.poll(() => api<SessionView>('GET', `/v1/sessions/${sid}`)).toMatchObject({ state: 'closed', live: false });
  expect(complaints).toEqual([]);
  await close();
});

test('an open page shows new calls and the end of its session', async () => {
  const sid = await open('palestra/echo', 8);
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/sessions/${sid}`, 'No calls yet');
  await call(sid, 'echo', { text: 'said while watched' });
  await page.getByText('said while watched').first().waitFor();
  await api('DELETE', `/v1/sessions/${sid}`);
  await page.getByRole('button', { name: 'End session' }).waitFor({ state: 'detached' });
  await expect.poll(() => page.locator('header').innerText()).toContain('closed');
  expect(complaints).toEqual([]);
  await close();
});

test('the keyboard alone can fork a deterministic session at a call', async () => {
  const sid = await open('palestra/echo', 9);
  for (const text of ['alpha', 'beta', 'gamma']) await call(sid, 'echo', { text });
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/sessions/${sid}`, 'gamma');
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Fork after call 2' }).focus();
  await page.keyboard.press('Enter');
  await page.waitForURL((url) => url.pathname.startsWith('/sessions/') && !url.pathname.endsWith(sid));
  await page.getByText('after call 2').waitFor();
  await page.getByText('beta').first().waitFor();
  expect(await page.locator('main').innerText()).not.toContain('gamma');
  expect(complaints).toEqual([]);
  await close();
});

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { randomOf, rolloutEvents, sendEvents } from '../support/fixtures/events.mjs';
import { type StreamProxy, startStreamProxy } from '../support/fixtures/stream-proxy.ts';
import { type SharedPalestra, sharedPalestra, startPalestra } from '../support/palestra.ts';
import { atRest, launch, loaded, openPage, type View, visit } from './browser.ts';

/** News of a page: one stream for all tabs of a browser, none for a hidden one, and a page that holds still when it is asked to. */

// Most of it is waiting for news, several times in each test.
vi.setConfig({ testTimeout: 240_000 });
let palestra: SharedPalestra;
let browser: Browser;
let proxy: StreamProxy;
/** The service as the browser sees it: behind a proxy that counts its streams. */
let seen: SharedPalestra;
const light: View = { width: 1280, theme: 'light' };
const RUN = 'the live run';
const random = randomOf(77);
let sent = 0;

/** Figures follow within this time, ms: the stream tells at most once a second, and steps are made again every one or two. */
const SOON = 40_000;

async function send(count: number, to = palestra): Promise<void> {
  const rollouts = Array.from({ length: count }, (_, i) =>
    rolloutEvents(random, {
      runName: RUN,
      rolloutName: `rollout ${sent + i}`,
      rollout_info: { task_index: sent + i, current_step: 1 },
      messages: [{ type: 'assistant_message', content: `line of ${sent + i}`, reward: 1, isFinished: true }],
    }),
  );
  await sendEvents(
    to,
    rollouts.flatMap(({ events }) => events),
  );
  sent += count;
}

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  proxy = await startStreamProxy(palestra.port);
  seen = { ...palestra, url: proxy.url };
  await send(3);
});
afterAll(async () => {
  await proxy?.close();
});

const runPath = () => `${proxy.url}/${palestra.namespace}/runs/${encodeURIComponent(RUN)}`;
const counts = (page: Page, count: number) => page.getByRole('banner').getByText(`${count} rollouts`).first().waitFor({ timeout: SOON });
/** Waits until the service has so many streams of the browser. */
const streams = async (count: number) => {
  await expect.poll(() => proxy.open(), { timeout: SOON }).toBe(count);
};
/** What a page hears of its visibility when a reader goes to another tab; headless Chromium has no tab strip to do it with. */
const show = (page: Page, state: 'visible' | 'hidden') =>
  page.evaluate((value) => {
    Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => value });
    document.dispatchEvent(new Event('visibilitychange'));
  }, state);

test('two tabs of a browser share one stream, and both hear its news', async () => {
  await streams(0);
  const { page, complaints, close } = await openPage(browser, seen, light);
  await visit(page, runPath(), RUN);
  await counts(page, sent);
  await streams(1);
  const second = await page.context().newPage();
  await visit(second, runPath(), RUN);
  await counts(second, sent);
  const before = proxy.requests.length;
  await send(2);
  await Promise.all([counts(page, sent), counts(second, sent)]);
  await streams(1);
  expect(proxy.requests).toHaveLength(before);
  await page.close();
  await send(1);
  await counts(second, sent);
  // The connection of a tab that is gone may last a moment.
  await streams(1);
  await second.close();
  expect(complaints).toEqual([]);
  await close();
});

test('a frozen page keeps its figures and says since when; let go, it shows what came', async () => {
  await streams(0);
  const { page, complaints, close } = await openPage(browser, seen, light);
  await visit(page, runPath(), RUN);
  await counts(page, sent);
  const kpis = page.locator('[data-kpi]').first();
  await kpis.waitFor();
  const toolbar = () =>
    page
      .locator('main')
      .getByText(/\d+ rollouts of \d+ step/)
      .first()
      .innerText();
  const figures = async () => [(await toolbar()).split(' of ')[0], await page.locator('main [data-kpi]').allInnerTexts()];
  await expect.poll(async () => (await figures())[0], { timeout: SOON }).toBe(`${sent} rollouts`);
  const other = await page.context().newPage();
  await visit(other, runPath(), RUN);
  await counts(other, sent);
  await page.keyboard.press('z');
  await page.getByRole('button', { name: /^Frozen at/ }).waitFor();
  const held = await figures();
  await send(4);
  // Both tabs hear the same stream: the news have come.
  await counts(other, sent);
  await other.close();
  await loaded(page);
  expect(await figures()).toEqual(held);
  await page.keyboard.press('z');
  await expect.poll(async () => (await figures())[0], { timeout: SOON }).toBe(`${sent} rollouts`);
  expect(complaints).toEqual([]);
  await close();
});

test('a hidden tab has no stream and asks for nothing; shown again, it catches up', async () => {
  await streams(0);
  const { page, complaints, close } = await openPage(browser, seen, light);
  await visit(page, runPath(), RUN);
  await counts(page, sent);
  const other = await openPage(browser, seen, light);
  await visit(other.page, runPath(), RUN);
  await counts(other.page, sent);
  await streams(2);
  await show(page, 'hidden');
  await streams(1);
  let asked: string[] = [];
  let last = Date.now();
  page.on('request', (request) => {
    asked.push(request.url());
    last = Date.now();
  });
  // What was told before may still be read.
  await expect.poll(() => Date.now() - last).toBeGreaterThan(4_000);
  asked = [];
  await send(3);
  // Who watches hears of them.
  await counts(other.page, sent);
  await other.close();
  await streams(0);
  await atRest(page);
  expect(asked).toEqual([]);
  await show(page, 'visible');
  await streams(1);
  await counts(page, sent);
  expect(complaints).toEqual([]);
  await close();
});

test('after a restart of the service the stream goes on from the version that was heard last', async () => {
  // A service for this test alone: other files share the one that must not stop.
  const own = await startPalestra();
  const way = await startStreamProxy(own.port);
  onTestFinished(async () => {
    await way.close();
    await own.stop();
  });
  await send(3, own);
  const { page, close } = await openPage(browser, { ...own, url: way.url }, light);
  await visit(page, `${way.url}/${own.namespace}/runs/${encodeURIComponent(RUN)}`, RUN);
  await counts(page, 3);
  await expect.poll(() => way.open(), { timeout: SOON }).toBe(1);
  await send(2, own);
  await counts(page, 5);
  const before = way.requests.length;
  await own.terminate();
  await own.restart();
  await send(2, own);
  await expect.poll(() => way.requests.length, { timeout: 60_000 }).toBeGreaterThan(before);
  await counts(page, 7);
  const resumed = way.requests.slice(before).map((head) => /^last-event-id: *(\d+)\r$/im.exec(head)?.[1]);
  expect(Number(resumed.at(-1))).toBeGreaterThan(0);
  await expect.poll(() => page.getByText('refreshed every 5 s').count()).toBe(0);
  await close();
});

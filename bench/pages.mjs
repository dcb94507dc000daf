// Latencies of pages in Chromium over the built service, with the fixtures of tests/support/fixtures and a large run of support/uploads.mjs.
// PALESTRA_BENCH_ROLLOUTS: size of the large run, default 1000000, for which the targets are defined. PALESTRA_CHROMIUM: another browser
// than /usr/bin/chromium.
import { existsSync } from 'node:fs';
import { sendEvents } from '../tests/support/fixtures/events.mjs';
import { hugeRollout, longRollout, startFeeder } from '../tests/support/fixtures/rollouts.mjs';
import { openClient } from './support/client.mjs';
import { apiKey, discard, startPalestra } from './support/processes.mjs';
import { atMost, median, quantile } from './support/figures.mjs';
import { loadRollouts, settled } from './support/store.mjs';

const ROLLOUTS = Number(process.env.PALESTRA_BENCH_ROLLOUTS ?? 1_000_000);
const VISITS = 7;
const SCROLLED_FRAMES = 240;
const FED_MS = 15_000;
/** The first figures of a new run cover its start, ms. */
const FED_WARMING_MS = 4_000;
const chromiumPath = process.env.PALESTRA_CHROMIUM ?? '/usr/bin/chromium';

const p95 = (values) => quantile(values, 0.95);
const row = (name, value, limit, unit = 'ms') => atMost(limit, name, value, unit);

/**
 * Runs in the page before its scripts: `painted` is the time of the frame with all of `selectors`, in ms after the navigation;
 * `longTasks` in ms.
 */
function watch(selectors) {
  globalThis.longTasks = [];
  new PerformanceObserver((list) => globalThis.longTasks.push(...list.getEntries().map(({ duration }) => duration))).observe({
    type: 'longtask',
  });
  globalThis.painted = new Promise((resolve) => {
    const look = new MutationObserver(() => {
      if (!selectors.every((selector) => document.querySelector(selector))) return;
      look.disconnect();
      // After the frame that shows them.
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
    });
    look.observe(document, { childList: true, subtree: true });
  });
}

/** Median milliseconds to the first paint of `selectors`, over visits after one that fills the cache of the browser. */
async function timeToPaint(context, url, selectors) {
  const times = [];
  for (let visit = 0; visit <= VISITS; visit += 1) {
    const page = await context.newPage();
    await page.addInitScript(watch, selectors);
    await page.goto(url, { waitUntil: 'commit' });
    const painted = await page.evaluate(() => globalThis.painted);
    if (visit > 0) times.push(painted);
    await page.close();
  }
  return median(times);
}

/** p95 of the times between frames while the element scrolls a little in each of them. */
const scrollFrames = (page, selector) =>
  page.evaluate(
    async ([where, count]) => {
      const scroller = document.querySelector(where);
      const frame = () => new Promise(requestAnimationFrame);
      const frames = [];
      let before = await frame();
      for (let i = 0; i < count; i += 1) {
        scroller.scrollTop += 120;
        const now = await frame();
        frames.push(now - before);
        before = now;
      }
      return frames;
    },
    [selector, SCROLLED_FRAMES],
  );

async function heapMegabytes(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  await session.send('Performance.enable');
  const { metrics } = await session.send('Performance.getMetrics');
  return metrics.find(({ name }) => name === 'JSHeapUsedSize').value / 1e6;
}

async function benchLarge(context, runs) {
  const paint = await timeToPaint(context, `${runs}/large`, ['[data-kpi]', 'main canvas']);
  const page = await context.newPage();
  await page.goto(`${runs}/large/rollouts`);
  await page.locator('[role=table] [data-row]').first().waitFor();
  await page.evaluate(() => document.querySelector('[role=table]').parentElement.setAttribute('data-scroller', ''));
  const frames = await scrollFrames(page, '[data-scroller]');
  const heap = await heapMegabytes(page);
  await page.close();
  return [
    row(`${ROLLOUTS} rollouts: run page, its figures and first chart painted, median`, paint, 1_000),
    row(`${ROLLOUTS} rollouts: Explorer scrolls, p95 frame`, p95(frames), 20),
    row(`${ROLLOUTS} rollouts: heap of the Explorer`, heap, 300, 'MB'),
  ];
}

async function benchLong(context, palestra, client) {
  const { id, events } = longRollout();
  await sendEvents(palestra, events);
  // Measures reads of stored data; the last figure measures reads during ingest.
  await settled(client, events[0].runName, 1);
  const url = `${palestra.url}/rollout/${id}`;
  const paint = await timeToPaint(context, url, ['article']);
  const linked = await timeToPaint(context, `${url}#m-9000`, ['article[data-anchor="9000"]']);
  const page = await context.newPage();
  await page.goto(url);
  await page.locator('article').first().waitFor();
  await page.waitForTimeout(1_000);
  const frames = await scrollFrames(page, '[aria-label="Transcript, scrollable"]');
  await page.close();
  return [
    row('rollout of 10000 messages: first paint, median', paint, 500),
    row('rollout of 10000 messages: first paint of #m-9000, median', linked, 500),
    row('rollout of 10000 messages: scrolls, p95 frame', p95(frames), 20),
  ];
}

async function benchHuge(context, palestra, client) {
  const { id, events } = hugeRollout();
  await sendEvents(palestra, events);
  // The long one is in the same run.
  await settled(client, events[0].runName, 2);
  const page = await context.newPage();
  await page.addInitScript(watch, ['article']);
  await page.goto(`${palestra.url}/rollout/${id}`);
  const gate = page.getByRole('button', { name: /^show raw lines/ });
  await gate.waitFor();
  await page.waitForTimeout(1_000);
  // The first paint of the page already measures the shell.
  const before = await page.evaluate(() => globalThis.longTasks.length);
  await gate.click();
  await page.getByRole('region', { name: /^Raw lines, part 1 / }).waitFor();
  await page.getByRole('button', { name: 'Later part' }).click();
  await page.getByRole('region', { name: /^Raw lines, part 2 / }).waitFor();
  await page.waitForTimeout(1_000);
  const tasks = await page.evaluate((from) => globalThis.longTasks.slice(from), before);
  await page.close();
  return [row('50 MB message: longest task while it is opened and read on', Math.max(0, ...tasks), 100)];
}

/** Age of the oldest acknowledged rollout that is not yet in the count of the page, at every check. */
async function benchLive(context, palestra, runs) {
  const run = 'fed';
  const feeder = await startFeeder(palestra, { run });
  const page = await context.newPage();
  const lags = [];
  try {
    await page.goto(`${runs}/${run}`);
    const count = page
      .locator('header')
      .getByText(/\d rollouts?\b/)
      .first();
    await count.waitFor();
    const began = performance.now();
    while (performance.now() - began < FED_MS) {
      const text = await count.innerText();
      const now = performance.now();
      const shown = Number(/([\d\u202f]+) rollouts?\b/.exec(text)[1].replaceAll('\u202f', ''));
      const missing = feeder.rolloutsAt[shown];
      if (now - began > FED_WARMING_MS) lags.push(missing === undefined ? 0 : now - missing);
      await page.waitForTimeout(100);
    }
    const fed = feeder.messages / ((performance.now() - feeder.rolloutsAt[0]) / 1_000);
    return [row(`live: ${fed.toFixed(0)} messages a second, from the acknowledgement to the page, p95`, p95(lags), 3_000)];
  } finally {
    await feeder.stop();
    await page.close();
  }
}

export async function benchPages() {
  if (!existsSync(chromiumPath)) {
    console.log(`pages: not measured, there is no Chromium at ${chromiumPath}; PALESTRA_CHROMIUM names another place.`);
    return [];
  }
  const { chromium } = await import('playwright-core');
  const service = await startPalestra();
  const palestra = { url: service.url, apiKey };
  const client = openClient(service.url, { 'x-api-key': apiKey }, 4);
  const args = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-background-networking'];
  const browser = await chromium.launch({ executablePath: chromiumPath, headless: true, args });
  try {
    const { org } = (await client.get('/v1/me')).body;
    await loadRollouts(service, { from: 0, count: ROLLOUTS, run: 'large' });
    await settled(client, 'large', ROLLOUTS);
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    const login = await context.request.post(`${palestra.url}/v1/login`, { data: { key: apiKey } });
    if (!login.ok()) throw new Error(`POST /v1/login: ${login.status()}`);
    const runs = `${palestra.url}/${org.name}/runs`;
    return [
      ...(await benchLarge(context, runs)),
      ...(await benchLong(context, palestra, client)),
      ...(await benchHuge(context, palestra, client)),
      ...(await benchLive(context, palestra, runs)),
    ];
  } finally {
    await browser.close();
    client.close();
    await discard(service);
  }
}

import pg from 'pg';
import type { Browser, Locator, Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { formatCount } from '../../apps/dashboard/src/format/number.ts';
import { fillLargeRun } from '../../bench/support/large-run.mjs';
import { randomOf, rolloutEvents, sendEvents } from '../support/fixtures/events.mjs';
import {
  FIXTURE_RUN,
  GROUP,
  HUGE,
  hugeRollout,
  LONG_MESSAGES,
  largeGroup,
  longRollout,
  RARE,
  startFeeder,
} from '../support/fixtures/rollouts.mjs';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { launch, openPage, pressTwice, settled, type View, visit } from './browser.ts';

/**
 * The fixtures of dashboard.md 13.1: what must hold whatever the machine does meanwhile. Their times are measured by `npm run bench pages`,
 * F5 is libs/rollouts' golden results, F6 hostile.spec.ts.
 */
const MOST_ROWS = 300;
const ROLLOUTS = Number(process.env.BENCH_ROLLOUTS ?? 100_000);
const light: View = { width: 1280, theme: 'light' };
const FED_RUN = 'fixture F7';
/** On a machine that has other things to do; the bench measures it. */
const CATCH_UP_MS = 60_000;
let palestra: SharedPalestra;
let browser: Browser;
const long = longRollout();
const huge = hugeRollout();

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  for (const { events } of [long, huge, ...largeGroup()]) await sendEvents(palestra, events);
}, 240_000);

const article = (page: Page, anchor: number) => page.locator(`article[data-anchor="${anchor}"]`);
const transcript = (page: Page) => page.getByRole('region', { name: 'Transcript, scrollable' });
const topOf = (page: Page, anchor: number) =>
  article(page, anchor).evaluate((row) => row.getBoundingClientRect().top - row.closest('[role=region]')!.getBoundingClientRect().top);
const runPath = (run: string, rest = '') => `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(run)}${rest}`;
const exact = (text: string | null) => Number((text ?? '').replaceAll(/[^\d.]/g, ''));

describe('F1, a run of very many rollouts', () => {
  let expected: { steps: number; highest: number; least: number };

  beforeAll(async () => {
    const client = new pg.Client({ connectionString: palestra.databaseUrl! });
    await client.connect();
    const { rows } = await client.query<{ id: string }>('SELECT id FROM organisations WHERE name = $1', [palestra.namespace]);
    const { run } = await fillLargeRun(client, rows[0]!.id, { rollouts: ROLLOUTS, steps: Math.max(1, Math.round(ROLLOUTS / 2_000)) });
    const found = await client.query(
      'SELECT count(DISTINCT step)::int AS steps, max(reward) AS highest, min(reward) AS least FROM rollouts WHERE run_seq = $1',
      [run],
    );
    expected = found.rows[0];
    await client.end();
  }, 300_000);

  test('the run page says how many there are, and draws every step', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, runPath('large'), `${formatCount(ROLLOUTS)} rollouts`);
    await expect.poll(() => page.locator('main').innerText(), { timeout: 30_000 }).toMatch(new RegExp(`of ${expected.steps} steps`));
    expect(complaints).toEqual([]);
    await close();
  });

  test('the Explorer shows the best and the worst, and never holds more than 300 rows', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    const rows = page.getByRole('table', { name: 'Rollouts of the query' }).locator('[data-row]');
    const reward = async () =>
      exact(
        await rows
          .first()
          .locator('[role=cell]', { hasText: /^[–-]?\d*\.\d+/ })
          .first()
          .textContent(),
      );
    await page.goto(runPath('large', '/rollouts?sort=-reward'));
    await rows.first().waitFor();
    await expect.poll(reward).toBeCloseTo(expected.highest, 2);
    const scroller = page.getByRole('table', { name: 'Rollouts of the query' }).locator('..');
    const further = async () => {
      await scroller.evaluate((element) => (element.scrollTop += 2_000));
      await page.waitForTimeout(60);
      expect(await rows.count()).toBeLessThanOrEqual(MOST_ROWS);
    };
    for (let i = 0; i < 30; i += 1) await further();
    // Pages of the list come as fast as they can.
    const last = async () => Number(await rows.last().getAttribute('data-index'));
    for (let i = 0; i < 300 && (await last()) <= 500; i += 1) await further();
    expect(await last()).toBeGreaterThan(500);
    expect(complaints).toEqual([]);
    await close();
  });
});

test('F2: a link to message 9000 of 10 000 lands and stays, find reaches what is not there, and few rows exist', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/rollout/${long.id}#m-9000`, 'This is message 9000.');
  const landed = await settled(page, () => topOf(page, 9_000));
  expect(Math.abs(landed)).toBeLessThan(24);
  await expect.poll(() => article(page, 9_000).getAttribute('aria-current')).toBe('true');
  await page.waitForTimeout(1_500);
  expect(Math.abs((await topOf(page, 9_000)) - landed)).toBeLessThan(2);
  const setSize = Number(await page.locator('article').first().getAttribute('aria-setsize'));
  expect(setSize).toBeGreaterThan(LONG_MESSAGES / 2);
  const few = async () => {
    expect(await page.locator('article').count()).toBeLessThanOrEqual(MOST_ROWS);
    expect(await page.locator('nav[aria-label=Outline] button').count()).toBeLessThanOrEqual(MOST_ROWS);
  };
  await few();
  await page.keyboard.press('Control+f');
  await page.getByRole('textbox', { name: 'Find in this rollout' }).fill(RARE.word);
  await page.waitForURL(new RegExp(`#m-${RARE.index}$`));
  await page.getByText('Only here stands').waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('G');
  // In the outline, too, where that has its row already.
  await page.getByText('The long one ends.').first().waitFor();
  await pressTwice(page, 'g');
  await page.getByText('Begin the long one.').waitFor();
  await transcript(page).evaluate((element) => (element.scrollTop = element.scrollHeight / 2));
  await page.waitForTimeout(300);
  await few();
  expect(complaints).toEqual([]);
  await close();
});

test('F3: fifty megabytes are behind a gate; nothing of them is asked for before it is opened, and then only a part', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  const bodies: string[] = [];
  let bytes = 0;
  page.on('request', (request) => {
    if (request.url().includes('/body')) bodies.push(request.headers()['range'] ?? 'everything');
  });
  page.on('requestfinished', async (request) => {
    bytes += (await request.sizes().catch(() => ({ responseBodySize: 0 }))).responseBodySize;
  });
  await visit(page, `${palestra.url}/rollout/${huge.id}`, 'Dump it.');
  const gate = page.getByRole('button', { name: /^show raw lines \(50\.?\d* MB\)$/ });
  await gate.waitFor();
  await page.waitForTimeout(1_000);
  expect(bodies).toEqual([]);
  expect(bytes).toBeLessThan(4_000_000);
  await gate.click();
  await page
    .getByRole('region', { name: /^Raw lines, part 1 of/ })
    .getByText(HUGE.firstLine)
    .first()
    .waitFor();
  await page.getByRole('button', { name: 'Later part' }).click();
  await page.getByRole('region', { name: /^Raw lines, part 2 of/ }).waitFor();
  await expect.poll(() => bodies.length).toBe(2);
  for (const range of bodies) {
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(range)!;
    expect(Number(to) - Number(from)).toBeLessThan(200_000);
  }
  expect(complaints).toEqual([]);
  await close();
});

test('F4: a group of 64 is a matrix whose pass@k are those of the vector', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, { width: 1920, theme: 'dark' });
  await visit(page, runPath(FIXTURE_RUN, '/groups'), 'received');
  const headers = { 'x-api-key': palestra.apiKey };
  const answer = await fetch(`${palestra.url}/v1/runs/${encodeURIComponent(FIXTURE_RUN)}/groups`, { headers });
  const { groups } = (await answer.json()) as { groups: { key: string; received: number; step: number }[] };
  const key = groups.find(({ received }) => received === GROUP.n)!.key;
  await visit(page, runPath(FIXTURE_RUN, `/groups/${key}?at=1`), 'aligned with sample');
  const matrix = page.getByRole('table', { name: 'Actions of all samples' });
  expect(await matrix.getAttribute('aria-colcount')).toBe(String(GROUP.n));
  await expect.poll(() => matrix.getByRole('columnheader').count()).toBe(GROUP.n + 1);
  const titles = await page
    .locator('[data-figures] [title]')
    .evaluateAll((all) => all.map((one) => [one.textContent, (one as HTMLElement).title] as const));
  for (const [k, value] of Object.entries(GROUP.pass)) {
    const title = titles.find(([text]) => text?.startsWith(`pass@${k}.`))?.[1];
    expect(Number(title?.split(' ')[0]), `pass@${k}`).toBeCloseTo(value, 5);
  }
  await page.getByRole('button', { name: 'Lanes' }).click();
  await page.waitForURL(/view=lanes/);
  expect(complaints).toEqual([]);
  await close();
});

describe('F7, 500 messages a second', () => {
  const before = 80;

  beforeAll(async () => {
    const random = randomOf(70);
    const rollouts = Array.from({ length: before }, (_, n) =>
      rolloutEvents(random, {
        runName: FED_RUN,
        rolloutName: `before ${n}`,
        rollout_info: { task_index: n, current_step: 0 },
        messages: [{ type: 'assistant_message', content: `line of ${n}`, reward: n % 2, isFinished: true }],
      }),
    );
    await sendEvents(
      palestra,
      rollouts.flatMap(({ events }) => events),
    );
  });

  test('nothing that is read moves; the pills count what came; the counts catch up', async () => {
    const { page: list, complaints, close } = await openPage(browser, palestra, light);
    let feed = () => {};
    const feeder = await startFeeder(palestra, { run: FED_RUN, begin: new Promise((resolve) => (feed = resolve)) });
    try {
      const reader = await list.context().newPage();
      await visit(reader, `${palestra.url}/rollout/${feeder.open}`, 'fed line 0');
      await visit(list, runPath(FED_RUN, '/rollouts'), 'rollouts');
      await list.locator('[data-row]').first().waitFor();
      const count = list.locator('section[aria-label=Rollouts] span', { hasText: /^[\d\u202f]+ of / }).first();
      const shown = exact((await count.innerText()).split(' of ')[0]!);
      const rows = list.getByRole('table', { name: 'Rollouts of the query' });
      const scroller = rows.locator('..');
      for (const element of [scroller, transcript(reader)]) await element.evaluate((one) => (one.scrollTop = 600));
      await list.waitForTimeout(400);
      /** What a reader sees and where, px: rows outside the view come and go. */
      const inView = (scrolled: Locator) =>
        scrolled.evaluate((one) => {
          const view = one.getBoundingClientRect();
          const rows = [...one.querySelectorAll<HTMLElement>('[data-row]')].filter((row) => {
            const { top, bottom } = row.getBoundingClientRect();
            return bottom > view.top && top < view.bottom;
          });
          const name = (row: HTMLElement) => row.dataset['anchor'] ?? row.querySelector('a')?.getAttribute('href');
          return [one.scrollTop, ...rows.map((row) => `${name(row)} at ${Math.round(row.getBoundingClientRect().top)}`)];
        });
      const place = async () => ({ list: await inView(scroller), reader: await inView(transcript(reader)) });
      // Rows come as they are read: until the view is full and rests.
      await expect.poll(async () => (await place()).list.length).toBeGreaterThan(20);
      const first = await settled(list, place);
      const seen = feeder.openMessages;
      feed();
      const pill = reader.getByRole('button', { name: / new$/ });
      await pill.waitFor({ timeout: CATCH_UP_MS });
      for (let i = 0; i < 12; i += 1) {
        await list.waitForTimeout(250);
        expect(await place()).toEqual(first);
      }
      await expect.poll(() => feeder.messages, { timeout: CATCH_UP_MS }).toBeGreaterThan(500);
      await feeder.stop();
      const total = before + feeder.rolloutsAt.length;
      await expect.poll(() => pill.innerText(), { timeout: CATCH_UP_MS }).toBe(`↓ ${formatCount(feeder.openMessages - seen)} new`);
      await list.getByRole('button', { name: `${total - shown} new` }).waitFor({ timeout: CATCH_UP_MS });
      await list
        .getByText(`${total} rollouts ·`)
        .or(list.getByText(`· ${total} rollouts`))
        .first()
        .waitFor({ timeout: CATCH_UP_MS });
      expect(await place()).toEqual(first);
      await list.getByRole('button', { name: `${total - shown} new` }).click();
      await expect.poll(async () => exact((await count.innerText()).split(' of ')[0]!)).toBe(total);
      expect(complaints).toEqual([]);
    } finally {
      feed();
      await feeder.stop();
      await close();
    }
  }, 300_000);
});

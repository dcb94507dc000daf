import type { Browser, Locator, Page } from 'playwright-core';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { RunView } from '@palestra/protocol';
import { formatCount } from '../../apps/dashboard/src/format/number.ts';
import { randomOf, rolloutEvents, sendEvents } from '../support/fixtures/events.mjs';
import { startFeeder } from '../support/fixtures/rollouts.mjs';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { launch, openPage, settled, type View, visit } from './browser.ts';

/**
 * The large fixtures (tests/support/fixtures): properties that must hold on a machine of any speed. Their times are measured by `npm run bench pages`.
 * F2 and F3 are in rollout-large.spec.ts, F4 in groups.spec.ts, F5 in libs/rollouts' golden results, F6 in hostile.spec.ts.
 */
const MOST_ROWS = 300;
/** Far more than a page of the list holds; the bench measures 100 000. */
const ROLLOUTS = 20_000;
const STEPS = 50;
const GROUP = 8;
const light: View = { width: 1280, theme: 'light' };
const FED_RUN = 'fixture F7';
/** On a machine that has other things to do; the bench measures it. */
const CATCH_UP_MS = 60_000;
let palestra: SharedPalestra;
let browser: Browser;

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
});

const transcript = (page: Page) => page.getByRole('region', { name: 'Transcript, scrollable' });
const runPath = (run: string, rest = '') => `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(run)}${rest}`;
const exact = (text: string | null) => Number((text ?? '').replaceAll(/[^\d.]/g, ''));

describe('F1, a run of very many rollouts', () => {
  const rewardOf = (n: number) => ((n * 7_919) % 1_000) / 999;

  beforeAll(async () => {
    const random = randomOf(10);
    const rollouts = Array.from({ length: ROLLOUTS }, (_, n) =>
      rolloutEvents(random, {
        runName: 'large',
        rolloutName: `large ${n}`,
        rollout_info: { task_index: Math.floor(n / GROUP) % 1_000, current_step: Math.floor((n * STEPS) / ROLLOUTS) },
        messages: [{ type: 'assistant_message', content: `answer ${n}`, reward: rewardOf(n), isFinished: true }],
      }),
    );
    await sendEvents(
      palestra,
      rollouts.flatMap(({ events }) => events),
    );
    const pending = async () => {
      const answer = await fetch(`${palestra.url}/v1/runs/large`, { headers: { 'x-api-key': palestra.apiKey } });
      return ((await answer.json()) as RunView).pending;
    };
    await vi.waitUntil(async () => (await pending()) === null, { timeout: 240_000, interval: 500 });
  }, 300_000);

  test('the run page says how many there are, and draws every step', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, runPath('large'), `${formatCount(ROLLOUTS)} rollouts`);
    await expect.poll(() => page.locator('main').innerText(), { timeout: 30_000 }).toMatch(new RegExp(`of ${STEPS} steps`));
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
    await expect.poll(reward).toBeCloseTo(1, 2);
    const scroller = page.getByRole('table', { name: 'Rollouts of the query' }).locator('..');
    const further = async () => {
      await scroller.evaluate(async (element) => {
        element.scrollTop += 2_000;
        await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      });
      expect(await rows.count()).toBeLessThanOrEqual(MOST_ROWS);
    };
    for (let i = 0; i < 30; i += 1) await further();
    // Pages of the list come as fast as they can.
    const last = async () => Number(await rows.last().getAttribute('data-index'));
    await expect.poll(async () => (await further(), last())).toBeGreaterThan(500);
    expect(complaints).toEqual([]);
    await close();
  });
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
      const deadline = Date.now() + CATCH_UP_MS;
      while (feeder.messages <= 1_000 && Date.now() < deadline) expect(await place()).toEqual(first);
      expect(feeder.messages).toBeGreaterThan(1_000);
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

import { randomUUID } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { expectSound, expectSoundInEveryView, launch, loaded, openPage, settled, shoot, soon, type View, visit } from './browser.ts';
import { ENVIRONMENTS, makeRun, type Raw, runName, STEPS, upload } from './overview.data.ts';
import { canonical, groupsOf, halfWidth, percentile, skyrl, totalOf } from './overview.slow.ts';
import { messageEvents, uploadEvents } from './upload.ts';

const rollouts = makeRun();
const otherRun = 'overview suite, with half of it';
let palestra: SharedPalestra;
let browser: Browser;

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  await upload(palestra, rollouts);
  await upload(palestra, rollouts.slice(0, 100), otherRun);
});

const wide: View = { width: 1920, theme: 'light' };
const overviewUrl = (search = '') => `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(runName)}${search}`;
const ofSteps = (from: number, to: number) => rollouts.filter(({ step }) => step >= from && step <= to);
const rewardOf = (own: readonly Raw[]) => own.flatMap((rollout) => totalOf(rollout) ?? []);

/** The first number of a text, and half a unit of its last digit: what rounding may take away. */
function numberIn(text: string): { value: number; off: number } {
  const found = /([−-]?)(\d[\d\u202f]*(?:\.\d+)?|\.\d+)(k?)( %)?/.exec(text);
  if (!found) throw new Error(`no number in “${text}”`);
  const digits = found[2]!.replaceAll('\u202f', '');
  const unit = (found[3] ? 1000 : 1) * (found[4] ? 0.01 : 1);
  const off = 0.5 * 10 ** -(digits.split('.')[1]?.length ?? 0) * unit;
  return { value: (found[1] ? -1 : 1) * Number(digits) * unit, off: off * 1.0001 };
}
function expectShown(text: string, expected: number, what: string): void {
  const { value, off } = numberIn(text);
  expect(Math.abs(value - expected), `${what}: “${text}” for ${expected}`).toBeLessThanOrEqual(off);
}
const kpi = (page: Page, key: string) => page.locator(`[data-kpi="${key}"] dd`).first();
/** Shows the figures that are folded at first. */
async function unfold(page: Page): Promise<void> {
  const folded = page.locator('details:not([open]) > summary', { hasText: 'All figures' });
  if ((await folded.count()) > 0) await folded.click();
}
/** Some figures of a page follow others by a moment. */
const expectKpis = (page: Page, expected: Record<string, number>): Promise<void> =>
  soon(async () => {
    await unfold(page);
    for (const [key, value] of Object.entries(expected)) expectShown(await kpi(page, key).innerText(), value, key);
  });
/** The rows of a chart's table, by the name of the step; each cell under its head. */
async function tableOf(page: Page, title: string): Promise<Map<string, Record<string, string>>> {
  await page.getByRole('button', { name: `Table of ${title}` }).click();
  const region = page.getByRole('region', { name: `${title} as a table` });
  await region.locator('tbody tr').first().waitFor();
  const heads = await region.locator('thead th').allInnerTexts();
  const rows = await region
    .locator('tbody tr')
    .evaluateAll((elements) => elements.map((row) => [...row.children].map((cell) => (cell as HTMLElement).innerText)));
  await page.getByRole('button', { name: `Chart of ${title}` }).click();
  return new Map(rows.map((cells) => [cells[0]!.toLowerCase(), Object.fromEntries(heads.map((head, i) => [head.trim(), cells[i]!]))]));
}
/** The plotting area of a chart. */
async function plotOf(page: Page, title: string) {
  const area = page.getByRole('img', { name: title }).locator('.u-over');
  await area.waitFor();
  await loaded(page);
  await area.scrollIntoViewIfNeeded();
  return (await settled(page, () => area.boundingBox()))!;
}

test('an address without an organisation leads to the same page of one’s own', async () => {
  const { page, complaints } = await openPage(browser, palestra, wide);
  const run = encodeURIComponent(runName);
  const places = [
    ['/', '/runs'],
    ['/runs', '/runs'],
    [`/runs/${run}`, `/runs/${run}`],
    [`/runs/${run}/rollouts?q=step%3A2`, `/runs/${run}/rollouts?q=step%3A2`],
  ] as const;
  for (const [asked, reached] of places) {
    await visit(page, palestra.url + asked, asked.includes(run) ? runName : otherRun);
    await expect.poll(() => page.url()).toBe(`${palestra.url}/${palestra.namespace}${reached}`);
  }
  expect(complaints).toEqual([]);
  await expectSound(page);
});

describe('what the page says of a run', () => {
  test('every figure is the one that the raw events give', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, wide);
    await visit(page, overviewUrl(), 'Is the reward moving?');
    await kpi(page, 'reward_mean').waitFor();
    const expected = canonical(rollouts);
    const shown = async () => {
      const keys = await page
        .locator('[data-kpi]')
        .evaluateAll((elements) => elements.map((element) => (element as HTMLElement).dataset['kpi']!));
      return keys.filter((key) => !key.startsWith('count:')).toSorted();
    };
    // Nothing is shown that is not checked.
    await expect.poll(shown).toEqual(Object.keys(expected).toSorted());
    await expectKpis(page, expected);
    expect(await page.locator('[data-kpi="pass@1"]').first().getAttribute('title')).toContain('1 − C(n−c,k)/C(n,k)');
    await soon(async () => expectShown((await kpi(page, 'avg@n').innerText()).split('±')[1]!, halfWidth(rollouts), 'interval of avg@n'));
    await expect.poll(() => kpi(page, 'reward_mean').innerText()).toContain(`n ${expected['scored']} of ${rollouts.length} rollouts`);
    await expectKpis(page, {
      'count:rollouts': rollouts.length,
      'count:unscored': 1 - expected['scored']! / rollouts.length,
      'count:errors': rollouts.filter(({ stop }) => stop === 'infra_error').length / rollouts.length,
      'count:finished': rollouts.filter(({ stop }) => stop === 'finished').length / rollouts.length,
      'count:gaps': 0,
      'count:incomplete': 1,
    });
    expect(complaints).toEqual([]);
    await close();
  });

  test('cells of the charts’ tables are those of each step', async () => {
    const { page, close } = await openPage(browser, palestra, wide);
    await visit(page, overviewUrl(), 'Is the reward moving?');
    await page.getByRole('img', { name: 'How do rollouts end?' }).waitFor();
    await expectKpis(page, { 'count:rollouts': rollouts.length });
    await loaded(page);
    const tables = {
      reward: await tableOf(page, 'Is the reward moving?'),
      solved: await tableOf(page, 'How many groups are solved?'),
      pass: await tableOf(page, 'How often do k tries solve a task?'),
      stops: await tableOf(page, 'How do rollouts end?'),
      tokens: await tableOf(page, 'Where do the tokens come from?'),
      heat: await tableOf(page, 'How are rewards distributed?'),
    };
    for (let step = 0; step < STEPS; step += 1) {
      const own = ofSteps(step, step);
      const figures = canonical(own);
      const row = (table: keyof typeof tables) => tables[table].get(`step ${step}`)!;
      expectShown(row('reward')['p50']!, percentile(rewardOf(own), 50), `median of step ${step}`);
      expectShown(row('reward')['Mean']!, figures['reward_mean']!, `mean of step ${step}`);
      expectShown(row('solved')['None']!, figures['solved_none']!, `solved none of step ${step}`);
      expectShown(row('pass')['pass@4']!, figures['pass@4']!, `pass@4 of step ${step}`);
      expectShown(
        row('stops')['max_turns']!,
        own.filter(({ stop }) => stop === 'max_turns').length / own.length,
        `max_turns of step ${step}`,
      );
      expectShown(row('tokens')['Output']!, figures['tokens_out']!, `tokens of step ${step}`);
      expect(row('heat')['(.240, .320]']).toBe(String(rewardOf(own).filter((reward) => reward > 0.24 && reward <= 0.32).length));
      expect(row('heat')['n']).toBe(String(rewardOf(own).length));
    }
    await close();
  });

  test('with SkyRL’s definitions it shows its names and what it would have logged', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, wide);
    await visit(page, overviewUrl('?lens=skyrl'), 'reward/avg_raw_reward');
    await page.getByRole('img', { name: 'environment/num_rewards' }).waitFor();
    await expectKpis(page, skyrl(rollouts));
    await loaded(page);
    for (const name of Object.keys(skyrl(rollouts))) {
      const table = await tableOf(page, name);
      for (let step = 0; step < STEPS; step += 1)
        expectShown(table.get(`step ${step}`)!['Value']!, skyrl(ofSteps(step, step))[name]!, `${name} of step ${step}`);
    }
    await unfold(page);
    await page.getByText(/not in the upload$/).click();
    await page.getByText('generate/avg_num_tokens', { exact: true }).waitFor();
    expect(complaints).toEqual([]);
    await close();
  });
});

describe('what can be done on it', () => {
  test('a brush is a range of steps in the address, for figures and charts; the chip clears it', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, wide);
    await visit(page, overviewUrl(), 'Is the reward moving?');
    await page.getByRole('img', { name: 'Is the reward moving?' }).waitFor();
    const plot = await plotOf(page, 'Is the reward moving?');
    const at = (step: number) => plot.x + ((step + 0.5) / STEPS) * plot.width;
    await page.mouse.move(at(1.6), plot.y + 30);
    await page.mouse.down();
    await page.mouse.move(at(5.4), plot.y + 60, { steps: 5 });
    await page.mouse.up();
    await page.waitForURL(/steps=2\.\.5/);
    const own = ofSteps(2, 5);
    await page.locator('[data-kpi="count:rollouts"] dd', { hasText: String(own.length) }).waitFor();
    await expectKpis(page, canonical(own));
    await page.getByRole('button', { name: 'Clear the range of steps 2..5' }).click();
    await page.locator('[data-kpi="count:rollouts"] dd', { hasText: String(rollouts.length) }).waitFor();
    expect(new URL(page.url()).searchParams.get('steps')).toBeNull();
    expect(complaints).toEqual([]);
    await close();
  });

  test('a click on a cell of the heatmap opens exactly the rollouts that it counts', async () => {
    const { page, close } = await openPage(browser, palestra, wide);
    const edge = 0.08;
    const top = Math.ceil(Math.max(...rewardOf(rollouts)) / edge - 1e-9) * edge;
    for (const [step, reward] of [
      [3, 0.28],
      [6, 1],
      [0, 0],
    ] as const) {
      await visit(page, overviewUrl(), 'How are rewards distributed?');
      await page.getByRole('img', { name: 'How are rewards distributed?' }).waitFor();
      const plot = await plotOf(page, 'How are rewards distributed?');
      const bin = Math.max(0, Math.ceil(reward / edge - 1e-9) - 1);
      await page.mouse.click(plot.x + ((step + 0.5) / STEPS) * plot.width, plot.y + plot.height * (1 - ((bin + 0.5) * edge) / top));
      await page.waitForURL(/\/rollouts\?/);
      const q = new URL(page.url()).searchParams.get('q')!;
      expect(q).toContain(`step:${step} `);
      const counted = rewardOf(ofSteps(step, step)).filter(
        (one) => (bin === 0 ? one >= 0 : one > bin * edge) && one <= (bin + 1) * edge + 1e-9,
      ).length;
      expect(counted).toBeGreaterThan(0);
      const answer = await page.request.get(
        `${palestra.url}/v1/runs/${encodeURIComponent(runName)}/rollouts?${new URLSearchParams({ q })}`,
      );
      expect(((await answer.json()) as { total: number }).total, q).toBe(counted);
    }
    await close();
  });

  test('the pointer over one chart shows the values of its step in all of them', async () => {
    const { page, close } = await openPage(browser, palestra, wide);
    await visit(page, overviewUrl(), 'Is the reward moving?');
    await page.getByRole('img', { name: 'How do rollouts end?' }).waitFor();
    const plot = await plotOf(page, 'Is the reward moving?');
    await page.mouse.move(plot.x + (3.5 / STEPS) * plot.width, plot.y + 40);
    for (const title of ['Is the reward moving?', 'How are rewards distributed?', 'Where do the tokens come from?', 'How do rollouts end?'])
      await page
        .getByRole('region', { name: title })
        .or(page.locator('section', { has: page.getByRole('heading', { name: title }) }))
        .getByText('step 3', { exact: true })
        .first()
        .waitFor();
    expect(page.url()).toBe(overviewUrl());
    await close();
  });

  test('an advisory links to its rollouts, an environment filters the figures, and groups have pips', async () => {
    const { page, close } = await openPage(browser, palestra, wide);
    await visit(page, overviewUrl(), 'of the tool results are errors.');
    await page
      .getByRole('img', { name: /of 4 solved/ })
      .first()
      .waitFor();
    await page.getByRole('button', { name: /All environments/ }).click();
    await page.getByRole('menuitemradio', { name: ENVIRONMENTS[1] }).click();
    const own = rollouts.filter(({ environment }) => environment === ENVIRONMENTS[1]);
    await page.locator('[data-kpi="count:rollouts"] dd', { hasText: String(own.length) }).waitFor();
    await expectKpis(page, { reward_mean: canonical(own)['reward_mean']!, groups: groupsOf(own).length });
    await page
      .getByRole('listitem')
      .filter({ hasText: 'tool results are errors' })
      .getByRole('link', { name: 'Show the rollouts' })
      .click();
    await page.waitForURL(/\/rollouts\?.*has/);
    await close();
  });
});

describe('the list of runs', () => {
  test('says how a run does, and takes two of them to a comparison', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, { width: 1280, theme: 'light' });
    await visit(page, `${palestra.url}/${palestra.namespace}/runs`, runName);
    const row = (name: string) => page.getByRole('row').filter({ hasText: name });
    const columnOf = async (head: string) => {
      const heads = await page.getByRole('columnheader').allInnerTexts();
      return heads.findIndex((text) => text.toLowerCase().includes(head));
    };
    const newest = canonical(rollouts);
    await expect.poll(() => row(runName).innerText()).toContain(String(rollouts.length));
    await soon(async () =>
      expectShown(
        await row(runName)
          .getByRole('cell')
          .nth(await columnOf('zero var'))
          .innerText(),
        newest['zero_variance']!,
        'groups with zero variance',
      ),
    );
    const cell = async (head: string) =>
      row(runName)
        .getByRole('cell')
        .nth(await columnOf(head));
    expect(await columnOf('source')).toBe(-1);
    await page.setViewportSize({ width: 1920, height: 1000 });
    await expect.poll(() => columnOf('source')).toBeGreaterThan(0);
    expect(await (await cell('source')).innerText()).toBe('generic');
    expect(await (await cell('type')).innerText()).toBe('train');
    await shoot(page, 'runs-1920-light');
    await page.setViewportSize({ width: 1280, height: 800 });
    await row(runName).getByRole('checkbox').check();
    expect(await page.getByRole('button', { name: 'Compare' }).isDisabled()).toBe(true);
    await row(otherRun).focus();
    await page.keyboard.press('x');
    await shoot(page, 'runs-1280-light');
    await expectSound(page);
    await page.getByRole('button', { name: 'Compare' }).click();
    await page.waitForURL(/\/compare\?runs=/);
    // A name with a comma would read as two: then the id stands there.
    expect(new URL(page.url()).searchParams.get('runs')).toMatch(/^[\da-f-]{36},[\da-f-]{36}$/);
    expect(complaints).toEqual([]);
    await close();
  });
});

describe('a run of which no step is known', () => {
  const name = 'overview suite, without steps';
  beforeAll(() =>
    uploadEvents(
      palestra,
      Array.from({ length: 4 }, () => randomUUID()).flatMap((id) => [
        { eventType: 'rollout', eventId: id, timestamp: Date.now(), runName: name, rolloutName: 'echo-0' },
        ...messageEvents(id, [{ type: 'assistant_message', content: 'hello', reward: 0.1, isFinished: true }]),
      ]),
    ),
  );

  test.each([
    ['time', '', /^from \d\d:\d\d:\d\d$/],
    ['rollouts', '?x=count', /^after 4 rollouts$/],
  ])('all its charts are over the same windows of arrival, by %s', async (_axis, search, called) => {
    const { page, complaints, close } = await openPage(browser, palestra, wide);
    await visit(page, `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(name)}${search}`, 'arrival window');
    await loaded(page);
    const curve = await tableOf(page, 'Is the reward moving?');
    expect([...curve.keys()]).toEqual([expect.stringMatching(called)]);
    const [window] = curve.keys();
    for (const [title, column, value] of [
      ['How are rewards distributed?', 'n', '4'],
      ['How do rollouts end?', 'finished', '100 %'],
      ['What goes wrong?', 'Interrupted', '0 %'],
    ] as const) {
      const table = await tableOf(page, title);
      expect([...table.keys()], title).toEqual([window]);
      expect(table.get(window!)![column], title).toBe(value);
    }
    expect(complaints).toEqual([]);
    await close();
  });
});

test('it looks right in every view', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, { width: 1280, theme: 'light' });
  await visit(page, overviewUrl(), 'Is the reward moving?');
  await page.getByRole('img', { name: 'How do rollouts end?' }).waitFor();
  await expectSoundInEveryView(page, 'overview');
  expect(complaints).toEqual([]);
  await close();
});

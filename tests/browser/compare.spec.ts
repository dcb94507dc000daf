import type { Browser } from 'playwright-core';
import { formatReward } from '@palestra/kit/reward-text';
import { beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { expectSound, expectSoundInEveryView, launch, loaded, openPage, shoot, soon, type View, visit } from './browser.ts';
import { cellsOf, mean, RUN_A, RUN_B, scored, type Sent, sentRun, tidy, uploadSent } from './insights.data.ts';

/** Comparisons of runs and of rollouts: every figure against a slow recomputation from what was sent. */
let palestra: SharedPalestra;
let browser: Browser;
const light: View = { width: 1280, theme: 'light' };
const a = sentRun(RUN_A, 6, 5);
const b = sentRun(RUN_B, 4, 4);

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  await uploadSent(palestra, a);
  await uploadSent(palestra, b);
});
const compared = () => `${palestra.url}/compare?runs=${encodeURIComponent(`${RUN_A},${RUN_B}`)}`;
const threeDigits = (value: number) => formatReward(value);
const change = (value: number) => formatReward(value, { signed: true });

describe('Compare', () => {
  // Run B has fewer steps: only the common ones are compared.
  const common = (sent: readonly Sent[]) => sent.filter(({ step }) => step < 4);
  const success = (sent: readonly Sent[], task: number) => scored(common(sent).filter((one) => one.task === task));
  const shared = [0, 1, 2, 3];

  test('figures of both runs in their common steps, and the settings that differ', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, compared(), 'Shared tasks');
    await page.getByText('Steps 0 to 3: the 4 that every run has (of 6, 4).').waitFor();
    const row = async (key: string) => tidy(await page.locator(`tr[data-kpi="${key}"]`).innerText());
    await soon(async () => {
      const rewards = await row('reward_mean');
      for (const sent of [common(a), common(b)])
        for (const part of [threeDigits(mean(scored(sent))), `n ${scored(sent).length}`]) expect(rewards).toContain(part);
    });
    // Groups of one task at one step; pass@1 of a group is its share of successes.
    const shares = (sent: readonly Sent[]) =>
      [...new Set(sent.map(({ step, task }) => `${step}/${task}`))]
        .map((key) => scored(sent.filter(({ step, task }) => key === `${step}/${task}`)))
        .flatMap((rewards) => (rewards.length === 0 ? [] : [mean(rewards)]));
    await soon(async () => {
      const pass = await row('pass@1');
      for (const part of [threeDigits(mean(shares(common(a)))), threeDigits(mean(shares(common(b))))]) expect(pass).toContain(part);
    });
    expect(tidy(await page.locator('tr[data-setting="Model"]').innerText())).toBe('Model Qwen2.5-3B Qwen2.5-7B');
    expect(await page.locator('tr[data-setting="Environments"]').count()).toBe(0);
    await page.getByRole('button', { name: /equal settings$/ }).click();
    await page.locator('tr[data-setting="Environments"]').waitFor();
    expect(complaints).toEqual([]);
    await close();
  });

  test('differences are paired by task, with an interval, power and the tasks that flipped; each leads to its rollouts', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, compared(), 'Shared tasks');
    const deltas = shared.map((task) => mean(success(b, task)) - mean(success(a, task)));
    // Student's t for 3 degrees of freedom at .975.
    const centre = mean(deltas);
    const half = (3.182_446_305 * Math.sqrt(deltas.reduce((sum, delta) => sum + (delta - centre) ** 2, 0) / 3)) / 2;
    await soon(async () => {
      const pair = tidy(await page.locator('[data-pair="B"]').innerText());
      expect(pair).toContain(change(centre));
      expect(pair).toContain(`95 % ${change(centre - half)} to ${change(centre + half)} Paired by 4 tasks`);
      const samples = [a, b].map((sent) => shared.flatMap((task) => success(sent, task)).length);
      expect(pair).toContain(`${samples[0]} and ${samples[1]} rollouts`);
    });
    expect(await page.locator('[data-power="B"]').innerText()).toMatch(
      /^A true difference of [\d.]+ is detected in 80 % of comparisons like this one\./,
    );
    const solves = (sent: readonly Sent[], task: number) => mean(success(sent, task)) >= 0.5;
    const flipped = shared.filter((task) => solves(a, task) !== solves(b, task));
    expect(flipped.length).toBeGreaterThan(0);
    const flips = page.locator('[data-flip]');
    expect((await flips.allInnerTexts()).map((one) => Number(/train (\d)/.exec(one)![1])).toSorted((x, y) => x - y)).toEqual(flipped);
    const [task] = flipped as [number];
    await flips
      .filter({ hasText: `train ${task}` })
      .getByRole('link')
      .first()
      .click();
    await page.waitForURL(/\/rollouts\?q=task/);
    const found = common(a).filter((one) => one.task === task).length;
    await page
      .getByText(new RegExp(`^${found}\\b`))
      .first()
      .waitFor();
    await page.goBack();
    // All steps: the long run counts its later steps too, and the page says so.
    await page.getByRole('button', { name: 'All steps' }).click();
    await page.waitForURL(/steps=all/);
    await page.getByText('Every step of each run (6, 4).').waitFor();
    const all = shared.map((one) => mean(success(b, one)) - mean(scored(a.filter((sent) => sent.task === one))));
    await expect.poll(async () => tidy(await page.locator('[data-pair="B"]').innerText())).toContain(change(mean(all)));
    expect(complaints).toEqual([]);
    await close();
  });

  test.each(['light', 'dark'] as const)('fits a window of 1440 px, %s', async (theme) => {
    const { page, complaints, close } = await openPage(browser, palestra, { width: 1280, theme });
    await page.setViewportSize({ width: 1440, height: 900 });
    await visit(page, compared(), 'Shared tasks');
    await loaded(page);
    await shoot(page, `compare-differences-1440-${theme}`);
    await expectSound(page);
    expect(complaints).toEqual([]);
    await close();
  });

  test('shared tasks have differences, and sort by the chosen column', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, compared(), 'Shared tasks');
    const of = success;
    const deltas = shared.map((task) => mean(of(b, task)) - mean(of(a, task)));
    await soon(async () => {
      expect(tidy(await page.locator('[data-better="B"]').innerText())).toContain(
        `better in ${deltas.filter((delta) => delta > 1e-9).length}, worse in ${deltas.filter((delta) => delta < -1e-9).length}`,
      );
    });
    const text = (values: readonly number[]) => `${threeDigits(mean(values))} n ${values.length}`;
    for (let task = 0; task < 4; task++)
      await expect
        .poll(async () => (await cellsOf(page, 'Tasks scored in all runs', `train ${task}`)).slice(2, 5))
        .toEqual([text(of(a, task)), text(of(b, task)), deltas[task] === 0 ? '0' : change(deltas[task]!)]);
    const order = async () =>
      (await page.getByRole('table', { name: 'Tasks scored in all runs' }).locator('[data-row]').allInnerTexts()).map((one) =>
        Number(/train (\d)/.exec(one)![1]),
      );
    // Differences of equal size are in any order: their last bits depend on the order in which rollouts arrived.
    const rounded = deltas.map((delta) => Math.round(delta * 1e9) + 0);
    const sizes = rounded.map((delta) => Math.abs(delta));
    await expect.poll(async () => (await order()).map((task) => sizes[task])).toEqual(sizes.toSorted((x, y) => y - x));
    await page.getByRole('columnheader', { name: /^Δ B/ }).getByRole('button').click();
    await page.waitForURL(/sort=delta/);
    await expect.poll(async () => (await order()).map((task) => rounded[task])).toEqual(rounded.toSorted((x, y) => y - x));
    await page.getByRole('button', { name: /^Use as reference/ }).click();
    await expect.poll(async () => tidy(await page.locator('[data-pair="B"]').innerText())).toContain(change(-mean(deltas)));
    expect(complaints).toEqual([]);
    await close();
  });

  test('curves of all runs as tables; rollouts as the other axis; without runs the page offers a choice', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, compared(), 'Shared tasks');
    await page.getByRole('button', { name: 'Table of Which run has the higher reward?' }).click();
    const table = page.getByRole('region', { name: 'Which run has the higher reward? as a table' });
    const at = (sent: readonly Sent[], step: number) => scored(sent.filter((one) => one.step === step));
    const side = (sent: readonly Sent[], step: number) =>
      at(sent, step).length === 0 ? '– –' : `${threeDigits(mean(at(sent, step)))} ${at(sent, step).length}`;
    await expect
      .poll(async () => (await table.locator('tbody tr').allInnerTexts()).map(tidy))
      .toEqual([0, 1, 2, 3, 4, 5].map((step) => `${step} ${side(a, step)} ${side(b, step)}`));
    await page.getByRole('button', { name: 'Rollouts', exact: true }).click();
    await page.waitForURL(/x=count/);
    await page.goBack();
    await visit(page, `${palestra.url}/compare`, 'Choose runs to compare');
    await page.getByRole('button', { name: RUN_A }).click();
    await page.getByText('Choose a run to compare with').waitFor();
    await page.getByRole('button', { name: RUN_B }).click();
    await page.getByText('Shared tasks').waitFor();
    expect(complaints).toEqual([]);
    await close();
  });

  test('two rollouts part at the first action that differs, and lead to their messages', async () => {
    const [one, other] = [a[0]!, a.find(({ calls }) => calls[0]!.arguments !== a[0]!.calls[0]!.arguments)!];
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, `${palestra.url}/compare?rollouts=${one.id},${other.id}`, 'First divergence, at row 1');
    await page.getByText(one.calls[0]!.arguments).first().waitFor();
    await page.getByText(other.calls[0]!.arguments).first().waitFor();
    await shoot(page, 'compare-rollouts-1280-light');
    await expectSound(page);
    await page.getByRole('button', { name: 'Swap sides' }).click();
    await page.waitForURL(new RegExp(`rollouts=${other.id}`));
    await page.getByRole('link', { name: '#1' }).first().click();
    await page.waitForURL(/\/rollout\/.*#m-1$/);
    expect(complaints).toEqual([]);
    await close();
  });
});

test('the comparison does not overflow, complain or have parts out of reach in any view', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  const places: [name: string, url: string, text: string][] = [
    ['compare', compared(), 'Shared tasks'],
    ['compare-choose', `${palestra.url}/compare`, 'Choose runs'],
  ];
  for (const [name, url, text] of places) {
    await visit(page, url, text);
    await expectSoundInEveryView(page, `insights-${name}`, { axe: true });
  }
  expect(complaints).toEqual([]);
  await close();
}, 300_000);

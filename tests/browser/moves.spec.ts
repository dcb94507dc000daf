import { randomUUID } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { countActions, expectSound, expectSoundInEveryView, launch, loaded, openPage, shoot, type View, visit } from './browser.ts';
import { messageEvents, uploadEvents } from './upload.ts';

/** Why a step moved: at most two actions from the overview to the failing call, and to all rollouts in which the tool failed. */
const RUN = 'moves / accuse';
const [STEPS, TASKS, SAMPLES, MOVED] = [16, 6, 4, 12];
const light: View = { width: 1280, theme: 'light' };
let palestra: SharedPalestra;
let browser: Browser;
/** Rollouts in which `accuse` was called with wrong names. */
const failing: { id: string; step: number }[] = [];

function rolloutOf(step: number, task: number, sample: number): object[] {
  const id = randomUUID();
  const fails = step === MOVED ? sample !== task % SAMPLES : (step * TASKS + task) % 40 === 7 && sample === 0;
  const reward = fails || (step + 3 * task + 5 * sample) % 10 < 3 ? 0 : 1;
  if (fails) failing.push({ id, step });
  const wrong = { who: 'Moss', with: 'rope', where: 'the study' };
  const right = { suspect: 'Moss', weapon: 'rope', room: 'the study' };
  return [
    {
      eventType: 'rollout',
      eventId: id,
      timestamp: Date.now(),
      runName: RUN,
      environment: 'palestra/whodunit',
      split: 'train',
      rollout_info: { task_index: (step * TASKS + task) % 18, current_step: step },
      metadata: { sample_idx: sample, n_samples: SAMPLES, group_id: `${step}-${task}`, stop_reason: 'finished' },
    },
    ...messageEvents(id, [
      { type: 'user_message', content: 'Find who did it.' },
      { type: 'tool_call', name: 'search', callId: 'c0', content: JSON.stringify({ room: 'the study' }) },
      { type: 'tool_result', callId: 'c0', content: 'Dust.' },
      { type: 'tool_call', name: 'accuse', callId: 'c1', content: JSON.stringify(fails ? wrong : right) },
      {
        type: 'tool_result',
        callId: 'c1',
        content: fails ? 'Invalid arguments: suspect is missing' : 'Noted.',
        ...(fails && { metadata: { is_error: true } }),
        reward,
        isFinished: true,
      },
    ]),
  ];
}

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  // What the environment publishes is known once somebody asked for it.
  await fetch(`${palestra.url}/v1/environments/palestra/whodunit/discovery`, { headers: { 'x-api-key': palestra.apiKey } });
  const events = Array.from({ length: STEPS * TASKS * SAMPLES }, (_, at) =>
    rolloutOf(Math.floor(at / TASKS / SAMPLES), Math.floor(at / SAMPLES) % TASKS, at % SAMPLES),
  ).flat();
  for (let at = 0; at < events.length; at += 2_000) await uploadEvents(palestra, events.slice(at, at + 2_000));
});

const overview = (search = '') => `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(RUN)}${search}`;
const at = (step: number) => failing.filter((one) => one.step === step);
const before = () => failing.filter(({ step }) => step >= MOVED - 5 && step < MOVED).length;
const [calls, earlier] = [TASKS * SAMPLES, 5 * TASKS * SAMPLES];
const panel = (page: Page) => page.getByRole('region', { name: `Why did step ${MOVED} move?` });

describe('why did it move', () => {
  test('two actions lead from the advisory to the failing call', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, overview(), 'Reward fell by');
    const sentence = `accuse failed in ${at(MOVED).length} of ${calls} calls; ${before()} of ${earlier} before`;
    await page.getByRole('list', { name: 'Advisories' }).getByText(sentence).waitFor();
    const actions = await countActions(page);
    await page.getByRole('link', { name: `Why did step ${MOVED} move?` }).click();
    const first = panel(page).getByRole('listitem').first();
    await first.getByText(sentence).waitFor();
    await shoot(page, 'moves-panel');
    await first.getByRole('link', { name: 'Open a failing call' }).click();
    await page.waitForURL(/\/rollout\/[^#]+#m-3$/);
    expect(at(MOVED).map(({ id }) => id)).toContain(new URL(page.url()).pathname.split('/').at(-1));
    await page.getByText('Invalid arguments: suspect is missing').first().waitFor();
    expect(actions()).toBe(2);
    expect(complaints).toEqual([]);
    await close();
  });

  test('the chart marks the step, and the keyboard opens and closes what explains it', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, overview(), 'Reward fell by');
    const mark = page.getByRole('button', { name: new RegExp(`^Show why: Reward fell by .* at step ${MOVED}$`) });
    await mark.focus();
    await page.keyboard.press('Enter');
    await panel(page).getByRole('listitem').first().waitFor();
    expect(await mark.getAttribute('aria-expanded')).toBe('true');
    expect(new URL(page.url()).searchParams.get('why')).toBe(String(MOVED));
    expect(
      await panel(page)
        .getByRole('heading')
        .evaluate((heading) => heading === document.activeElement),
    ).toBe(true);
    await page.keyboard.press('Escape');
    await panel(page).waitFor({ state: 'detached' });
    expect(new URL(page.url()).searchParams.has('why')).toBe(false);
    expect(complaints).toEqual([]);
    await close();
  });

  test('each cause links to the rollouts that show it', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, overview(`?why=${MOVED}`), 'accuse failed in');
    await panel(page)
      .getByRole('link', { name: `Show ${at(MOVED).length} rollouts` })
      .first()
      .click();
    await page.getByText(`${at(MOVED).length} of ${STEPS * TASKS * SAMPLES} rollouts`).waitFor();
    expect(complaints).toEqual([]);
    await close();
  });

  test('invalid arguments are a cause with the violation, its rollouts and an invalid call', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, overview(`?why=${MOVED}`), 'accuse failed in');
    const sentence = `accuse was called with invalid arguments in ${at(MOVED).length} of ${calls} checked calls; ${before()} of ${earlier} before`;
    const cause = panel(page).getByRole('listitem').filter({ hasText: sentence });
    await cause.getByText(/most often: must have required property '\w+'/).waitFor();
    const actions = await countActions(page);
    await cause.getByRole('link', { name: `Show ${at(MOVED).length} rollouts` }).click();
    await page.getByText(`${at(MOVED).length} of ${STEPS * TASKS * SAMPLES} rollouts`).waitFor();
    expect(actions()).toBe(1);
    await page.goBack();
    await cause.getByRole('link', { name: 'Open an invalid call' }).click();
    await page.waitForURL(/\/rollout\/[^#]+#m-3$/);
    expect(at(MOVED).map(({ id }) => id)).toContain(new URL(page.url()).pathname.split('/').at(-1));
    expect(complaints).toEqual([]);
    await close();
  });

  test('two actions lead to all rollouts in which accuse was called incorrectly', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, overview(), 'Reward fell by');
    const actions = await countActions(page);
    await page.getByRole('link', { name: 'Tools', exact: true }).click();
    await page.getByRole('link', { name: /^Show the rollouts in which accuse failed/ }).click();
    await page.getByText(`${failing.length} of ${STEPS * TASKS * SAMPLES} rollouts`).waitFor();
    expect(new URL(page.url()).searchParams.get('q')).toBe('tool.error:accuse');
    expect(actions()).toBe(2);
    expect(complaints).toEqual([]);
    await close();
  });

  test('is sound in every view', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, overview(`?why=${MOVED}`), 'accuse failed in');
    await panel(page).getByRole('listitem').first().waitFor();
    await expectSoundInEveryView(page, 'moves', { axe: true });
    await page.setViewportSize({ width: 390, height: 844 });
    await loaded(page);
    await shoot(page, 'moves-390');
    await expectSound(page);
    expect(complaints).toEqual([]);
    await close();
  });
});

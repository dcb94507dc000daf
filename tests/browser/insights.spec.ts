import type { Browser } from 'playwright-core';
import { formatReward } from '@palestra/kit/reward-text';
import { beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { expectSoundInEveryView, launch, openPage, shoot, soon, type View, visit } from './browser.ts';
import { cellsOf, mean, NAMES_RUN, RUN_A, RUN_B, scored, type Sent, sentRun, tidy, uploadSent } from './insights.data.ts';
import { uploadEvents, uploadRollout } from './upload.ts';

/** Tools, Failures, Tasks and Config: every figure against a slow recomputation from what was sent. */
let palestra: SharedPalestra;
let browser: Browser;
const light: View = { width: 1280, theme: 'light' };
const a = sentRun(RUN_A, 6, 5);
const b = sentRun(RUN_B, 4, 4);
const named = sentRun(NAMES_RUN, 2, 3);
let events: object[] = [];

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  // What the environment publishes is known once somebody asked for it.
  await get('/v1/environments/palestra/whodunit/discovery');
  events = await uploadSent(palestra, a);
  await uploadSent(palestra, b);
  await uploadSent(palestra, named, true);
});

async function get<T>(path: string): Promise<T> {
  const answer = await fetch(palestra.url + path, { headers: { 'x-api-key': palestra.apiKey } });
  if (!answer.ok) throw new Error(`GET ${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as T;
}
const change = (value: number) => formatReward(value, { signed: true });
const ofRun = (run: string, rest = '') => `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(run)}${rest}`;

describe('Tools', () => {
  const callsOf = (tool: string) => a.flatMap((sent) => sent.calls.filter((call) => call.tool === tool).map((call) => ({ sent, call })));

  test('counts calls, rollouts, errors and the difference in reward of each tool, and marks names that nobody publishes', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, ofRun(RUN_A, '/tools'), 'interview');
    for (const tool of ['search', 'interview', 'read_notes']) {
      const calls = callsOf(tool);
      const users = new Set(calls.map(({ sent }) => sent));
      const errors = calls.filter(({ call }) => call.error !== null).length;
      const others = a.filter((sent) => !users.has(sent));
      const delta = others.length === 0 ? null : mean(scored([...users])) - mean(scored(others));
      await soon(async () => {
        const cells = await cellsOf(page, 'Tools of the run', tool);
        expect(cells.slice(1, 4)).toEqual([String(calls.length), String(users.size), (calls.length / users.size).toFixed(2)]);
        expect(cells[4]).toContain(`(${errors})`);
        expect(cells.at(-1)).toBe(delta === null ? '–' : change(delta));
      });
    }
    const unknown = page.locator('[data-row]').filter({ hasText: 'unknown name' });
    await expect.poll(() => unknown.count()).toBe(1);
    expect(await unknown.innerText()).toContain('read_notes');
    expect(complaints).toEqual([]);
    await close();
  });

  test('opens a tool by keyboard: its steps as a table, and its calls against the published schema', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, ofRun(RUN_A, '/tools'), 'interview');
    await page.getByRole('table', { name: 'Tools of the run' }).locator('[data-row]').first().waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL(/tool=search/);
    const panel = page.getByRole('complementary', { name: 'Tool search' });
    await panel.getByRole('button', { name: 'Table of How often is it called?' }).click();
    const rows = panel.getByRole('region', { name: 'How often is it called? as a table' }).locator('tbody tr');
    const ofStep = (step: number) => callsOf('search').filter(({ sent }) => sent.step === step);
    await expect
      .poll(async () => (await rows.allInnerTexts()).map(tidy))
      .toEqual([0, 1, 2, 3, 4, 5].map((step) => `${step} ${ofStep(step).length} ${ofStep(step).length}`));
    const bad = callsOf('search').filter(({ call }) => !call.valid);
    await panel.locator('[data-verdict]').waitFor();
    expect(tidy(await panel.innerText())).toContain(`Checked the newest ${callsOf('search').length} calls in ${a.length} rollouts`);
    expect(tidy(await panel.locator('[data-verdict]').innerText())).toContain(
      `${bad.length} of ${callsOf('search').length} checked calls violate the schema`,
    );
    const broken = await panel.getByRole('table').last().locator('tbody tr').allInnerTexts();
    const noJson = bad.filter(({ call }) => call.arguments.endsWith(':')).length;
    expect(broken.map((row) => Number.parseInt(row, 10)).toSorted((a, b) => a - b)).toEqual(
      [noJson, bad.length - noJson].toSorted((a, b) => a - b),
    );
    expect(broken.join()).toContain("must have required property 'room'");
    await panel.getByRole('button', { name: 'Close' }).click();
    await page.waitForURL((url) => !url.search.includes('tool='));
    expect(complaints).toEqual([]);
    await close();
  });
});

test('Failures clusters what went wrong by cause; a cluster leads to all of its rollouts and to the failing call', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, ofRun(RUN_A, '/failures'), 'ValueError');
  const failed = a.filter(({ calls }) => calls.some(({ error }) => error !== null));
  const cut = a.filter(({ calls, stop }) => stop === 'max_turns' && calls.every(({ error }) => error === null));
  const clusters = page.getByRole('list', { name: 'Kinds of failure' }).locator('[data-row]');
  const cluster = (text: string) => clusters.filter({ hasText: text });
  await soon(async () => {
    expect(await clusters.count()).toBe(2);
    for (const [count, text] of [
      [failed.length, 'environment search ValueError: no room <n> in the house'],
      [cut.length, 'policy ▲ max_turns'],
    ] as const)
      expect((await clusters.allInnerTexts()).map(tidy)).toContainEqual(
        expect.stringMatching(new RegExp(`^${count} .*${text.replaceAll(' ', '.*')}.*All ${count} rollouts`)),
      );
  });
  const counts = `${failed.length + cut.length} of ${a.length} rollouts of steps 0 to 5 had a failure`;
  expect(tidy(await page.getByRole('main').innerText())).toContain(counts);
  await cluster('ValueError').getByRole('link', { name: 'Newest example' }).click();
  await page.waitForURL(/\/rollout\/.*#m-\d+$/);
  const cause = page.getByLabel('Cause');
  await cause.getByRole('button', { name: /search failed: ValueError: no room \d+ in the house/ }).waitFor();
  await page.goBack();
  await cluster('ValueError')
    .getByRole('link', { name: `All ${failed.length} rollouts` })
    .click();
  await page.getByText(`${failed.length} of ${a.length} rollouts`).waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test('Failures of chosen steps say which, count these alone, and say when each began; other runs open with the same cause', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  const isValueError = ({ calls }: Sent) => calls.some(({ error }) => error !== null);
  const [from, to] = [2, 3];
  const inScope = a.filter(({ step }) => step >= from && step <= to);
  const failed = inScope.filter(isValueError);
  const cut = inScope.filter((sent) => sent.stop === 'max_turns' && !isValueError(sent));
  await visit(page, ofRun(RUN_A, `/failures?steps=${from}..${to}`), 'ValueError');
  const cluster = page.getByRole('list', { name: 'Kinds of failure' }).locator('[data-row]').filter({ hasText: 'ValueError' });
  const counts = `${failed.length + cut.length} of ${inScope.length} rollouts of steps ${from} to ${to} had a failure`;
  await soon(async () => expect(tidy(await page.getByRole('main').innerText())).toContain(counts));
  const steps = failed.map(({ step }) => step);
  const seen = Math.min(...a.filter(isValueError).map(({ step }) => step));
  expect(seen).toBeLessThan(Math.min(...steps));
  const [first, last] = [Math.min(...steps), Math.max(...steps)];
  const text = tidy(await cluster.innerText());
  expect(text).toContain(`${first === last ? `Step ${first}` : `Steps ${first} to ${last}`}, first seen at step ${seen}`);
  const most = [from, to].toSorted((x, y) => shareAt(y) - shareAt(x))[0]!;
  function shareAt(step: number) {
    return failed.filter((one) => one.step === step).length / inScope.filter((one) => one.step === step).length;
  }
  await cluster.getByRole('img', { name: new RegExp(`most at step ${most}, `) }).waitFor();
  await cluster.getByRole('link', { name: `All ${failed.length} rollouts` }).click();
  await page.getByText(new RegExp(`^${failed.length} of \\d+ rollouts`)).waitFor();
  expect(Object.fromEntries(new URL(page.url()).searchParams)).toMatchObject({
    steps: `${from}..${to}`,
    q: expect.stringMatching(/^failure:[\da-f]{16}$/),
  });
  await page.goBack();
  // The other run opens with this cause, in all of its steps.
  await cluster.getByRole('link', { name: RUN_B, exact: true }).click();
  await page.waitForURL((url) => decodeURIComponent(url.pathname).endsWith(`/runs/${RUN_B}/rollouts`));
  expect(new URL(page.url()).searchParams.get('q')).toMatch(/^failure:[\da-f]{16}$/);
  expect(new URL(page.url()).searchParams.has('steps')).toBe(false);
  await page.getByText(`${b.filter(isValueError).length} of ${b.length} rollouts`).waitFor();
  expect(complaints).toEqual([]);
  await close();
});

describe('Tasks', () => {
  /** Solve rates by step, slowly. */
  function stripOf(task: number) {
    const steps = [0, 1, 2, 3, 4, 5].map((step) => {
      const rewards = scored(a.filter((one) => one.task === task && one.step === step));
      return { step, scored: rewards.length, successes: rewards.filter((reward) => reward >= 1).length };
    });
    const told = steps.filter((one) => one.scored > 0);
    const isSolved = (one: (typeof told)[number]) => one.successes / one.scored >= 0.5;
    let flips = 0;
    for (let i = 1; i < told.length; i++) if (isSolved(told[i]!) !== isSolved(told[i - 1]!)) flips++;
    const last = told.findLastIndex(isSolved);
    return {
      steps,
      first: told.find(({ successes }) => successes > 0)?.step ?? null,
      flips,
      regressed: last < 0 ? null : (told[last + 1]?.step ?? null),
      now: steps.at(-1)!,
    };
  }

  test('say first success, flips, regressions and where each task is now', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, ofRun(RUN_A, '/tasks'), 'train 4');
    for (let task = 0; task < 5; task++) {
      const { first, flips, regressed, now, steps } = stripOf(task);
      await soon(async () => {
        const cells = await cellsOf(page, 'Tasks of the run', `train ${task}`);
        expect(cells[5]).toContain(`${now.successes}/${now.scored}`);
        expect(cells[6]).toBe(first === null ? '–' : String(first));
        expect(cells[7]).toBe(String(flips));
        expect(cells[8]).toBe(regressed === null ? '–' : `▼ ${regressed}`);
        const label = await page
          .locator('[data-row]')
          .filter({ hasText: `train ${task}` })
          .locator('canvas')
          .getAttribute('aria-label');
        expect(label).toBe(`train ${task}: solve rate at ${steps.length} steps, ${now.successes} of ${now.scored} at step 5`);
      });
    }
    const regressed = [0, 1, 2, 3, 4].filter((task) => stripOf(task).regressed !== null);
    expect(regressed).toContain(0);
    await page.getByRole('button', { name: /^Regressed \d/ }).click();
    await page.waitForURL(/show=regressed/);
    await expect.poll(() => page.getByRole('table', { name: 'Tasks of the run' }).locator('[data-row]').count()).toBe(regressed.length);
    expect(complaints).toEqual([]);
    await close();
  });

  test('a scrubber leads through the steps of one task, by keyboard, and the address keeps them', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    await visit(page, ofRun(RUN_A, '/tasks'), 'train 4');
    await page.locator('[data-row]').filter({ hasText: 'train 0' }).click();
    await page.getByRole('button', { name: 'Steps side by side' }).click();
    const scrubber = page.getByRole('slider', { name: 'Last step' });
    await scrubber.focus();
    await page.keyboard.press('ArrowLeft');
    await page.waitForURL(/at=0(%2C|,)4/);
    for (const step of [0, 4]) {
      const section = page.getByRole('region', { name: `Step ${step}` });
      const rewards = scored(a.filter((one) => one.task === 0 && one.step === step));
      await section.getByText(`${rewards.filter((reward) => reward >= 1).length}/${rewards.length} solved`).waitFor();
      await expect.poll(() => section.locator('li').count()).toBe(4);
    }
    expect(complaints).toEqual([]);
    await close();
  });
});

test('a step without a score is hatched in the strip of its task, in its group, and in the list of groups', async () => {
  const run = 'steps without a score';
  for (const step of [0, 1, 2])
    for (let sample = 0; sample < 13; sample++) {
      const scoredAt = step === 1 ? {} : { reward: 1, isFinished: true };
      await uploadRollout(palestra, {
        runName: run,
        task: 0,
        step,
        sample,
        messages: [{ type: 'assistant_message', content: 'x', ...scoredAt }],
      });
    }
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, ofRun(run, '/tasks'), 'train 0');
  const strip = page.getByRole('table', { name: 'Tasks of the run' }).locator('canvas');
  /** Of each third of the strip: how many pixels are painted, of the pixels of a row in its middle. */
  const painted = () =>
    strip.evaluate((canvas: HTMLCanvasElement) => {
      const { data, width } = canvas.getContext('2d')!.getImageData(0, Math.floor(canvas.height / 2), canvas.width, 1);
      const third = Math.floor(width / 3);
      const shareOf = (from: number) =>
        Array.from({ length: third }, (_, i) => data[(from + i) * 4 + 3]!).filter((alpha) => alpha > 64).length / third;
      return [0, third, 2 * third].map(shareOf);
    });
  await soon(async () => {
    const [first, unscored, last] = await painted();
    expect(first).toBeGreaterThan(0.95);
    expect(last).toBeGreaterThan(0.95);
    expect(unscored).toBeGreaterThan(0.2);
    expect(unscored).toBeLessThan(0.8);
  });
  await shoot(page, 'tasks-unscored-1280-light');
  await visit(page, ofRun(run, '/groups'), 'train 0');
  await expect.poll(() => page.getByRole('img', { name: '13 unscored' }).locator('.hatched').count()).toBe(1);
  await shoot(page, 'groups-unscored-1280-light');
  await page.getByRole('table', { name: 'Groups' }).locator('[data-row]').first().click();
  const cell = page.getByRole('link', { name: 'step 1: not scored' });
  await expect.poll(() => cell.locator('.hatched').count()).toBe(1);
  await shoot(page, 'group-unscored-1280-light');
  expect(complaints).toEqual([]);
  await close();
});

test('Config counts what was ingested, including duplicates', async () => {
  // A client that got no answer sends the same again.
  await uploadEvents(palestra, events.slice(-1));
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, ofRun(RUN_A, '/config'), 'Ingest');
  const value = async (name: string) =>
    tidy(
      await page
        .locator('dt', { hasText: new RegExp(`^${name}$`) })
        .first()
        .locator('xpath=following-sibling::dd[1]')
        .innerText(),
    );
  // Ingest counts are written within a second; the stream then makes the page read them again.
  await expect.poll(() => value('Duplicates')).toBe('1');
  await expect.poll(() => value('Events accepted')).toBe(String(events.length));
  await expect.poll(() => value('Messages')).toBe(String(a.reduce((sum, { messages }) => sum + messages.length, 0)));
  expect(await value('Missing messages')).toBe('0');
  await expect.poll(() => value('Qwen2.5-3B')).toBe(String(a.length));
  expect(await value('palestra/whodunit')).toBe('reward ≥ 1');
  await soon(async () => {
    const reward = tidy(await page.locator('tr', { hasText: 'reward' }).first().innerText());
    expect(reward).toMatch(new RegExp(`^reward.* ${scored(a).length} .*${a.length - scored(a).length}$`));
  });
  expect(complaints).toEqual([]);
  await close();
});

test('nothing overflows, complains or is out of reach in any view', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  const places: [name: string, url: string, text: string][] = [
    ['tools', ofRun(RUN_A, '/tools'), 'interview'],
    ['tool', ofRun(RUN_A, '/tools?tool=search'), 'Checked the newest'],
    ['failures', ofRun(RUN_A, '/failures'), 'ValueError'],
    ['tasks', ofRun(RUN_A, '/tasks'), 'train 4'],
    ['config', ofRun(RUN_A, '/config'), 'Ingest'],
  ];
  for (const [name, url, text] of places) {
    await visit(page, url, text);
    await expectSoundInEveryView(page, `insights-${name}`, { axe: true });
  }
  expect(complaints).toEqual([]);
  await close();
}, 300_000);

test('saved settings reprocess the run after a preview of its names, and the run can be erased', { timeout: 150_000 }, async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, ofRun(NAMES_RUN, '/config'), 'Overrides');
  const dialog = page.getByRole('dialog', { name: `Erase ${NAMES_RUN}` });
  await page.getByRole('button', { name: 'Erase this run…' }).click();
  await expect.poll(async () => tidy(await dialog.innerText())).toContain(`${named.length} rollouts with all messages`);
  await dialog.getByRole('button', { name: 'Close' }).click();
  await page.getByLabel(/^Regex for rollout names/).fill('^case-(?P<task>\\d+)-at(?P<step>\\d+)-no(?P<sample>\\d+)$');
  const preview = page.getByRole('table', { name: 'Matches in the newest names' });
  await preview.getByRole('row').nth(3).waitFor();
  await soon(async () => {
    const found = (await preview.locator('tbody tr').allInnerTexts()).map(tidy);
    expect(found.length).toBeGreaterThan(3);
    for (const line of found) {
      const [, task, step, sample] = /^case-(\d)-at(\d)-no(\d) /.exec(line)!;
      expect(line).toMatch(new RegExp(` ${task} ${step} ${sample}$`));
    }
  });
  // The page reads its names again, too: of an erased run there would be none.
  const names = page.waitForResponse(/\/rollouts\?limit=50$/);
  await page.getByRole('button', { name: 'Save and reprocess the run' }).click();
  await names;
  const steps = async () => (await get<{ steps: { count: number } }>(`/v1/runs/${encodeURIComponent(NAMES_RUN)}/summary`)).steps.count;
  await expect.poll(steps, { timeout: 60_000 }).toBe(2);
  await page.getByRole('button', { name: 'Erase this run…' }).click();
  expect(await dialog.getByRole('button', { name: 'Erase permanently' }).isDisabled()).toBe(true);
  await dialog.getByLabel(/^Type/).fill(NAMES_RUN);
  await dialog.getByRole('button', { name: 'Erase permanently' }).click();
  await page.waitForURL(/\/runs$/);
  await page.getByText(RUN_A).first().waitFor();
  await expect.poll(() => page.getByText(NAMES_RUN).count()).toBe(0);
  const gone = await fetch(`${palestra.url}/v1/runs/${encodeURIComponent(NAMES_RUN)}/summary`, {
    headers: { 'x-api-key': palestra.apiKey },
  });
  expect(gone.status).toBe(404);
  expect(complaints).toEqual([]);
  await close();
});

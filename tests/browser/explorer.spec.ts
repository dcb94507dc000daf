import type { Browser, Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { expectSoundInEveryView, launch, openPage, soon, type View, visit } from './browser.ts';
import { RUN, type Sent, sentRollouts, uploadSent } from './explorer.data.ts';

let palestra: SharedPalestra;
let browser: Browser;
const sent = sentRollouts();
const narrow: View = { width: 1280, theme: 'light' };

const address = (search: Record<string, string> = {}) => {
  const query = new URLSearchParams(search).toString();
  return `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(RUN)}/rollouts${query && `?${query}`}`;
};
const api = async (path: string) => {
  const answer = await fetch(`${palestra.url}/v1/runs/${encodeURIComponent(RUN)}/${path}`, { headers: { 'x-api-key': palestra.apiKey } });
  return (await answer.json()) as Record<string, unknown>;
};

/** Derivation and the search index follow the upload by seconds. */
async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 150_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`never came: ${String(holds)}`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  await uploadSent(palestra, sent);
  await until(async () => ((await api('search?q=quetzal'))['hits'] as unknown[]).length === 1);
  await until(async () => (await api('facets'))['total'] === sent.length);
});

/** The run's own count follows its rollouts by seconds, and more on a busy machine: what matters here is that the list has been read. */
async function open(page: Page, search: Record<string, string> = {}): Promise<void> {
  await page.goto(address(search), { waitUntil: 'domcontentloaded' });
  await page
    .getByText(/of \d[\d\u202f]* rollouts/)
    .first()
    .waitFor();
}
const bar = (page: Page) => page.getByRole('combobox', { name: 'Query' });
const facets = (page: Page) => page.getByRole('complementary', { name: 'Facets' });
const number = (text: string | null) => Number(text!.replaceAll(/[^\d]/g, ''));

/** Counts of a facet by the clause that its row stands for. */
function counts(page: Page, title: string): Promise<Record<string, number>> {
  return facets(page)
    .getByRole('region', { name: title, exact: true })
    .evaluate((section) =>
      Object.fromEntries(
        [...section.querySelectorAll('label')].map((label) => [
          label.title,
          Number(label.parentElement!.lastElementChild!.textContent!.replaceAll(/[^\d]/g, '')),
        ]),
      ),
    );
}
function tally(rollouts: readonly Sent[], of: (one: Sent) => readonly string[]): Record<string, number> {
  const found: Record<string, number> = {};
  for (const one of rollouts) for (const value of new Set(of(one))) found[value] = (found[value] ?? 0) + 1;
  return found;
}
const shown = (page: Page) => page.locator('section[aria-label=Rollouts] strong, section[aria-label=Rollouts] .strong').first();

/** Ids of all rows from the first to the last, by scrolling; and the most rows that were ever in the page. */
async function everyRow(page: Page, total: number): Promise<{ ids: string[]; most: number }> {
  return page.evaluate(async (count) => {
    const table = document.querySelector('[role=table]')!;
    const scroller = table.parentElement!;
    const found = new Map<number, string>();
    let most = 0;
    const deadline = performance.now() + 90_000;
    while (found.size < count && performance.now() < deadline) {
      const rows = [...table.querySelectorAll<HTMLElement>('[data-row]')];
      most = Math.max(most, rows.length);
      for (const row of rows) found.set(Number(row.dataset['index']), row.querySelector('a')!.pathname.split('/').at(-1)!);
      const drawn = rows.some((row) => row.getBoundingClientRect().bottom >= innerHeight - 1);
      if (drawn) scroller.scrollTop += scroller.clientHeight * 0.8;
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    return { ids: [...found].toSorted(([a], [b]) => a - b).map(([, id]) => id), most };
  }, total);
}

describe('facets', () => {
  test('count what was sent, with and without a query', { timeout: 120_000 }, async () => {
    const { page, complaints, close } = await openPage(browser, palestra, narrow);
    await open(page);
    const check = async (rollouts: readonly Sent[]) => {
      expect(await counts(page, 'Stop reason')).toEqual(tally(rollouts, ({ stop }) => [`stop:${stop}`]));
      expect(await counts(page, 'Tool')).toEqual(tally(rollouts, ({ tools }) => tools.map((tool) => `tool:${tool}`)));
      expect(await counts(page, 'Failed tool')).toEqual(
        tally(rollouts, ({ failedTools }) => failedTools.map((tool) => `tool.error:${tool}`)),
      );
      expect(await counts(page, 'Environment')).toEqual(tally(rollouts, ({ env }) => [`env:${env}`]));
      expect(await counts(page, 'Phase')).toEqual(tally(rollouts, ({ phase }) => [`phase:${phase}`]));
      expect(await counts(page, 'Errors')).toEqual({ 'has:error': rollouts.filter(({ failedTools }) => failedTools.length > 0).length });
      const unscored = rollouts.filter(({ reward }) => reward === null).length;
      expect(Object.values(await counts(page, 'Reward'))).toEqual([unscored]);
    };
    await expect.poll(() => page.getByText('of 3\u202f000 rollouts').count(), { timeout: 60_000 }).toBe(1);
    await soon(() => check(sent));
    const binned = async () => {
      const bins = await page
        .getByRole('button', { name: /^Reward .* rollouts$/ })
        .evaluateAll((all) => all.map((one) => one.getAttribute('aria-label')!));
      return bins.reduce((sum, name) => sum + Number(name.split(': ')[1]!.replaceAll(/[^\d]/g, '')), 0);
    };
    await expect.poll(binned).toBe(sent.filter(({ reward }) => reward !== null).length);
    await open(page, { q: 'turns:>=0 sample:2', steps: '3..9' });
    await soon(() => check(sent.filter(({ step, sample }) => step >= 3 && step <= 9 && sample === 2)));
    expect(complaints).toEqual([]);
    await close();
  });

  test('write the query, and are checked by it', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, narrow);
    await open(page);
    await facets(page).getByRole('checkbox', { name: 'max_turns' }).click();
    await expect.poll(() => bar(page).inputValue()).toBe('stop:max_turns');
    await facets(page).getByRole('checkbox', { name: 'no_tool_call' }).click();
    await expect.poll(() => bar(page).inputValue()).toBe('stop:max_turns,no_tool_call');
    const expected = sent.filter(({ stop }) => stop === 'max_turns' || stop === 'no_tool_call').length;
    await expect.poll(async () => number(await shown(page).innerText())).toBe(expected);
    // The other values of an open choice keep their counts.
    const finished = sent.filter(({ stop }) => stop === 'finished').length;
    await expect.poll(async () => (await counts(page, 'Stop reason'))['stop:finished']).toBe(finished);
    await page.getByRole('button', { name: 'Without max_turns' }).click();
    await expect.poll(() => bar(page).inputValue()).toBe('stop:no_tool_call -stop:max_turns');
    await bar(page).fill('stop:finished   reward:=1');
    await expect.poll(() => facets(page).getByRole('checkbox', { name: 'finished' }).isChecked()).toBe(true);
    await expect.poll(() => facets(page).getByRole('checkbox', { name: 'no_tool_call' }).isChecked()).toBe(false);
    await bar(page).press('Enter');
    await page.waitForURL((url) => url.searchParams.get('q') === 'stop:finished reward:1');
    await expect.poll(() => bar(page).inputValue()).toBe('stop:finished reward:1');
    await page.goBack();
    await expect.poll(() => bar(page).inputValue()).toBe('stop:no_tool_call -stop:max_turns');
    expect(complaints).toEqual([]);
    await close();
  });

  test('say when they ignore a regex', async () => {
    const { page, close } = await openPage(browser, palestra, narrow);
    const note = facets(page).getByText('The counts ignore the regex of the query.');
    await open(page, { q: 'name:/x/' });
    await note.waitFor();
    await open(page, { q: 'step:12' });
    await facets(page).getByRole('checkbox').first().waitFor();
    expect(await note.count()).toBe(0);
    await close();
  });

  test('a bin of rewards holds exactly what its clause finds', async () => {
    const { page, close } = await openPage(browser, palestra, narrow);
    await open(page);
    await page.getByRole('button', { name: /^Reward \.2\d* to below / }).click();
    await page.waitForURL((url) => /^reward:>=\S+ reward:<\S+$/.test(url.searchParams.get('q') ?? ''));
    const [, from, below] = /^reward:>=(\S+) reward:<(\S+)$/.exec(new URL(page.url()).searchParams.get('q')!)!;
    const expected = sent.filter(({ reward }) => reward !== null && reward >= Number(from) && reward < Number(below)).length;
    expect(expected).toBeGreaterThan(0);
    await expect.poll(async () => number(await shown(page).innerText())).toBe(expected);
    await close();
  });
});

describe('the query bar', () => {
  test('completes keys and the names of the run by keyboard alone', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, narrow);
    await open(page);
    await bar(page).focus();
    await page.keyboard.type('too');
    await page.getByRole('option').first().waitFor();
    await page.keyboard.press('Tab');
    await expect.poll(() => bar(page).inputValue()).toBe('tool:');
    // The names of the run are asked for.
    await page.getByRole('option').nth(2).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    const second = await page.locator('[role=option][aria-selected=true] .mono').innerText();
    await page.keyboard.press('Enter');
    await expect.poll(() => bar(page).inputValue()).toBe(`tool:${second} `);
    await page.keyboard.type('env:count');
    await page.getByRole('option', { name: /countdown/ }).waitFor();
    await page.keyboard.press('Tab');
    await expect.poll(() => bar(page).inputValue()).toContain('env:palestra/countdown');
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.searchParams.get('q') === `tool:${second} env:palestra/countdown`);
    const expected = sent.filter(({ tools, env }) => tools.includes(second) && env === 'palestra/countdown').length;
    await expect.poll(async () => number(await shown(page).innerText())).toBe(expected);
    expect(complaints).toEqual([]);
    await close();
  });

  test('a completion leaves the caret behind it before the next key', async () => {
    const { page, close } = await openPage(browser, palestra, narrow);
    await open(page);
    await bar(page).fill(' stop:finished');
    await bar(page).press('Home');
    await page.keyboard.type('too');
    await page.getByRole('option', { name: /^tool/ }).first().waitFor();
    // In one task, so that no frame is drawn before the next key.
    const caret = await bar(page).evaluate(async (input: HTMLInputElement) => {
      input.dispatchEvent(new KeyboardEvent('keydown', { key: 'Tab', bubbles: true, cancelable: true }));
      await Promise.resolve();
      return input.value.slice(0, input.selectionStart!);
    });
    expect(caret).toBe('tool:');
    await close();
  });

  test('says at the word what is wrong, and mends it', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, narrow);
    await open(page);
    await bar(page).fill('reward:1 stpe:3');
    const alert = page.getByRole('alert');
    await alert.waitFor();
    await expect.poll(() => alert.innerText()).toContain('There is no key stpe:. Did you mean step:?');
    await expect.poll(() => page.locator('.decoration-wavy').allInnerTexts()).toEqual(['stpe']);
    await page.getByRole('button', { name: 'Use step' }).click();
    await expect.poll(() => bar(page).inputValue()).toBe('reward:1 step:3');
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.searchParams.get('q') === 'reward:1 step:3');
    // From a link with a wrong query nothing is asked of the server.
    await visit(page, address({ q: 'stop:finishd' }), 'stop: expects one of');
    expect(complaints).toEqual([]);
    await close();
  });
});

describe('the list', () => {
  // A window of three times the height is through in a third of the time: once in the small one is enough.
  test.each([
    { sort: '-reward', height: 800, rows: 70 },
    { sort: 'reward', height: 2_400, rows: 130 },
  ])('holds all 3 000 rollouts in the order $sort, each once, in a small page', { timeout: 120_000 }, async ({ sort, height, rows }) => {
    const { page, complaints, close } = await openPage(browser, palestra, narrow);
    await page.setViewportSize({ width: narrow.width, height });
    await open(page, { sort });
    const { ids, most } = await everyRow(page, sent.length);
    expect(most).toBeLessThan(rows);
    expect(new Set(ids).size).toBe(sent.length);
    const rewardOf = new Map(sent.map(({ id, reward }) => [id, reward]));
    const rewards = ids.map((id) => rewardOf.get(id)!);
    const known = rewards.filter((reward) => reward !== null);
    const sorted = known.toSorted((a, b) => (sort === 'reward' ? a - b : b - a));
    expect(known).toEqual(sorted);
    // Unscored rollouts come last in both orders.
    expect(rewards.slice(0, known.length)).toEqual(known);
    expect(known.length).toBeLessThan(rewards.length);
    expect(complaints).toEqual([]);
    await close();
  });

  test('is newest first, and a row says what was sent', { timeout: 120_000 }, async () => {
    const { page, close } = await openPage(browser, palestra, narrow);
    await page.setViewportSize({ width: narrow.width, height: 2_400 });
    await open(page, { cols: 'step,task,sample,reward,calls,errors,stop,env' });
    const { ids } = await everyRow(page, sent.length);
    const arrival = new Map(sent.map(({ id, step }) => [id, step]));
    expect(ids.map((id) => arrival.get(id)!)).toEqual(sent.map(({ step }) => step).toReversed());
    const rows = await page.locator('[data-row]').evaluateAll((all) =>
      all.map((row) => ({
        id: row.querySelector('a')!.pathname.split('/').at(-1)!,
        cells: [...row.children].map((cell) => cell.textContent),
      })),
    );
    for (const { id, cells } of rows.slice(0, 20)) {
      const one = sent.find((other) => other.id === id)!;
      const [, step, task, sample, reward, calls, errors, stop, env] = cells;
      expect([step, task, sample, calls, errors]).toEqual([
        String(one.step),
        `${one.phase === 'eval' ? 'test' : 'train'} ${one.task}`,
        String(one.sample),
        String(one.messages.filter(({ type }) => type === 'tool_call').length),
        String(one.failedTools.length),
      ]);
      expect(stop).toContain(one.stop);
      expect(env).toBe(one.env.split('/')[1]);
      if (one.reward === null) expect(reward).toMatch(/not scored|–/);
      else expect(Number(reward!.replace('−', '-').replace(/^(-?)\./, '$10.'))).toBeCloseTo(one.reward, 2);
    }
    await close();
  });

  test('Back finds scroll position, focus and selection; a new visit starts at the top', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, narrow);
    await open(page, { steps: '3..20' });
    await bar(page).fill('stop:finished');
    await bar(page).press('Enter');
    await page.waitForURL((url) => url.searchParams.get('q') === 'stop:finished');
    await bar(page).press('Escape');
    // Not the rows of the query before.
    const found = sent.filter(({ stop, step }) => stop === 'finished' && step >= 3 && step <= 20).length;
    await expect.poll(async () => number(await shown(page).innerText())).toBe(found);
    await page.locator('[data-row]').first().waitFor();
    for (let i = 0; i < 60; i++) await page.keyboard.press(i === 0 ? 'j' : 'ArrowDown');
    const state = () =>
      page.evaluate(() => ({
        top: document.querySelector('[role=table]')!.parentElement!.scrollTop,
        focus: (document.activeElement as HTMLElement).dataset['index'],
        current: document.querySelector<HTMLElement>('[data-row][aria-current=true]')?.dataset['index'],
      }));
    await expect.poll(state).toMatchObject({ focus: '59', current: '59' });
    const before = await state();
    expect(before.top).toBeGreaterThan(500);
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.pathname.startsWith('/rollout/'));
    expect(new URL(page.url()).searchParams.get('q')).toBe('step:3..20 stop:finished');
    await page.goBack();
    await page.locator('[data-row]').first().waitFor();
    await expect.poll(state).toEqual(before);
    await page.getByRole('link', { name: 'Groups' }).click();
    await page.getByRole('table', { name: 'Groups' }).locator('[data-row]').first().waitFor();
    await page.getByRole('link', { name: 'Rollouts' }).click();
    // The tab has the steps and no query. Not the rows of the groups, and not those of the list before.
    const inSteps = sent.filter(({ step }) => step >= 3 && step <= 20).length;
    await expect.poll(async () => number(await shown(page).innerText())).toBe(inSteps);
    await page.getByRole('table', { name: 'Rollouts of the query' }).locator('[data-row]').first().waitFor();
    expect((await state()).top).toBe(0);
    expect(complaints).toEqual([]);
    await close();
  });

  test('stays as it is when rollouts arrive, and says how many', { timeout: 150_000 }, async () => {
    const { page, close } = await openPage(browser, palestra, narrow);
    await visit(page, address({ q: 'step:77,0' }), 'of 3');
    const first = await page.locator('[data-row] a').first().getAttribute('href');
    const late = sent.slice(0, 7).map((one): Sent => ({ ...one, id: crypto.randomUUID(), step: 77, messages: one.messages.slice(0, 3) }));
    await uploadSent(palestra, late);
    const pill = page.getByRole('button', { name: /7 new/ });
    await pill.waitFor({ timeout: 45_000 });
    expect(await page.locator('[data-row] a').first().getAttribute('href')).toBe(first);
    await pill.click();
    await expect.poll(() => page.locator('[data-row]').first().innerText()).toMatch(/^77/);
    await expect.poll(() => pill.count()).toBe(0);
    await Promise.all(
      late.map(({ id }) => fetch(`${palestra.url}/v1/rollouts/${id}`, { method: 'DELETE', headers: { 'x-api-key': palestra.apiKey } })),
    );
    await expect.poll(async () => (await api('facets'))['total'], { timeout: 40_000 }).toBe(sent.length);
    await close();
  });
});

describe('search', () => {
  test('finds across the transcripts of the query, says where, and leads to the message', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, narrow);
    await open(page, { q: 'sample:0,1,2,3' });
    await page.keyboard.press('/');
    await page.keyboard.type('quetzal');
    await page.keyboard.press('Enter');
    await page.getByText('1 message', { exact: false }).first().waitFor();
    await expect.poll(() => page.locator('mark').allInnerTexts()).toEqual(['quetzal']);
    const wanted = sent[1_234]!;
    const hit = page.getByRole('list', { name: 'Hits' }).getByRole('link');
    expect(await hit.getAttribute('href')).toContain(
      `/rollout/${wanted.id}?q=sample%3A0%2C1%2C2%2C3+quetzal&sort=created_at#m-${wanted.messages.length - 1}`,
    );
    await hit.click();
    await page.waitForURL((url) => url.hash === `#m-${wanted.messages.length - 1}`);
    await page.getByText('quetzal').first().waitFor();
    expect(complaints).toEqual([]);
    await close();
  });

  test('counts hits per step, and a step narrows the query', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, narrow);
    await visit(page, address({ find: 'lantern' }), 'Hits per step');
    await page.getByRole('button', { name: 'table' }).click();
    const expected = tally(
      sent.filter(({ messages }) => messages.some(({ content }) => content.includes('lantern'))),
      ({ step }) => [`Step ${step}`],
    );
    const chips = async () => {
      const texts = await page.getByRole('region', { name: 'Hits per step' }).getByRole('listitem').allInnerTexts();
      return Object.fromEntries(texts.map((chip) => [chip.replace(/\s+\d+$/, ''), Number(chip.split(/\s+/).at(-1))]));
    };
    await expect.poll(chips).toEqual(expected);
    const step = Object.keys(expected)[2]!;
    await page.getByRole('button', { name: new RegExp(`^${step}\\b`) }).click();
    await page.waitForURL((url) => url.searchParams.get('q') === step.replace('Step ', 'step:'));
    await expect
      .poll(async () => number(await page.locator('section[aria-label="Messages found"] .strong').first().innerText()))
      .toBe(expected[step]);
    await visit(page, address({ find: 'lan.{2}rn', mode: 'regex', q: 'step:12..13' }), 'lantern');
    expect(complaints).toEqual([]);
    await close();
  });
});

test('the pages are sound in every view', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, narrow);
  await open(page, { q: 'tool:interview reward:>=0.2', steps: '2..20' });
  await page.locator('[data-row]').first().waitFor();
  for (const key of ['j', 'j', 'j']) await page.keyboard.press(key);
  await page
    .getByRole('complementary', { name: 'Preview of the rollout' })
    .getByRole('region', { name: 'Content of the rollout' })
    .waitFor();
  await expectSoundInEveryView(page, 'explorer');
  await visit(page, address({ find: 'lantern', q: 'step:12..' }), 'Hits per step');
  await expectSoundInEveryView(page, 'explorer-find');
  await open(page, { q: 'reward:9' });
  await page.getByText('No rollout matches the query').waitFor();
  await expectSoundInEveryView(page, 'explorer-empty');
  await page.getByRole('button', { name: 'Export', exact: true }).click();
  await page.getByRole('dialog').getByText('Hugging Face').waitFor();
  await expectSoundInEveryView(page, 'explorer-export');
  expect(complaints).toEqual([]);
  await close();
}, 300_000);

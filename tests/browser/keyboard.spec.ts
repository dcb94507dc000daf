import type { Browser, Page } from 'playwright-core';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { callMessages, randomOf, rolloutEvents, sendEvents } from '../support/fixtures/events.mjs';
import { SMALL_RUN, smallRun } from '../support/fixtures/rollouts.mjs';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { launch, loaded, openPage, pressShortcut, pressTwice, type View, visit, type Watched } from './browser.ts';

/** Every command of frame/keymap.ts, and the way from the runs to a verdict without a pointer. */
let palestra: SharedPalestra;
let browser: Browser;
let watched: Watched;
const light: View = { width: 1280, theme: 'light' };
const small = smallRun();

/** A group of three at step 1, and its task again at step 2, for the keys `h l [ ] { } n p d J K`. */
const KEY_RUN = 'the run of the keys';
const random = randomOf(91);
const sample = (step: number, index: number, reward: number) =>
  rolloutEvents(random, {
    runName: KEY_RUN,
    rolloutName: `step ${step} sample ${index}`,
    rollout_info: { task_index: 1, current_step: step },
    metadata: { sample_idx: index, n_samples: 3 },
    task_spec: { case: 1 },
    messages: [
      { type: 'system_message', content: 'You are a detective. Ask, search, then accuse once. '.repeat(20) },
      { type: 'user_message', content: `Find who did it, ${step}-${index}.` },
      { type: 'reasoning', content: `The lamp was lit at nine. ${'So nobody was in the study. '.repeat(20)}` },
      ...callMessages('a', 'search', { place: 'study' }, 'A letter.', { reward: 0.1 }),
      ...callMessages('b', 'interview', { witness: `witness ${index}` }, 'ValueError: nobody', { metadata: { is_error: true } }),
      ...callMessages('c', 'accuse', { suspect: `suspect ${index}` }, 'They lower their eyes.', { reward, isFinished: true }),
      { type: 'assistant_message', content: 'That was all.' },
    ],
  });
const [worst, best, middle] = [sample(1, 0, 0), sample(1, 1, 1), sample(1, 2, 0.5)];
const later = sample(2, 0, 0);
const words = new Map([
  [worst.id, 'Find who did it, 1-0.'],
  [best.id, 'Find who did it, 1-1.'],
  [middle.id, 'Find who did it, 1-2.'],
  [later.id, 'Find who did it, 2-0.'],
]);

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  await sendEvents(
    palestra,
    [...small, worst, best, middle, later].flatMap(({ events }) => events),
  );
});
beforeEach(async () => {
  watched = await openPage(browser, palestra, light);
  return async () => {
    await watched.close();
    if (watched.complaints.length > 0) throw new Error(`The page complained:\n${watched.complaints.join('\n')}`);
  };
});

const runPath = (run: string, rest = '') => `${palestra.url}/${palestra.namespace}/runs/${encodeURIComponent(run)}${rest}`;
const focused = (page: Page) => page.evaluate(() => document.activeElement?.textContent?.trim() ?? '');
/** Expects that the focused element is in view and has a visible focus mark. */
const expectFocusVisible = async (page: Page) => {
  const seen = () =>
    page.evaluate(() => {
      const element = document.activeElement!;
      const { top, bottom } = element.getBoundingClientRect();
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element);
      return {
        hasFocus: element !== document.body && element.matches(':focus-visible'),
        inView: bottom > 0 && top < innerHeight,
        marked: (outlineStyle !== 'none' && Number.parseFloat(outlineWidth) > 0) || boxShadow !== 'none',
      };
    });
  await expect.poll(seen).toEqual({ hasFocus: true, inView: true, marked: true });
};
/** Presses Tab until the element has the focus. */
async function tabTo(page: Page, name: string | RegExp, role: 'link' | 'button' = 'link'): Promise<void> {
  const target = page.getByRole(role, { name, exact: true }).first();
  await target.waitFor();
  for (let i = 0; i < 60; i += 1) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`60 times Tab did not lead to ${String(name)}`);
}
const hash = (page: Page) => new URL(page.url()).hash;
/** Waits for the text of the rollout in the address, because the address changes before the page. */
async function addressed(page: Page): Promise<void> {
  const id = new URL(page.url()).pathname.split('/').at(-1)!;
  await page.getByText(words.get(id)!, { exact: true }).first().waitFor();
}
const openRollout = (page: Page, id: string, rest = '') => visit(page, `${palestra.url}/rollout/${id}${rest}`, 'That was all.');

test('keys alone lead from Runs to Overview, Explorer, Group, Rollout and a verdict, and back', async () => {
  const { page } = watched;
  await visit(page, palestra.url, SMALL_RUN);
  await page.locator('[data-row]').first().waitFor();
  const onRun = () => page.locator('[data-row]:focus', { hasText: SMALL_RUN }).count();
  for (let i = 0; i < 5 && (await onRun()) === 0; i += 1) await page.keyboard.press('j');
  expect(await onRun()).toBe(1);
  await expectFocusVisible(page);
  // A box that was ticked does not keep the keys of the page to itself.
  await page.keyboard.press('Tab');
  await page.keyboard.press('Space');
  await page.getByRole('region', { name: 'Selected runs' }).waitFor();
  await page.keyboard.press('Space');
  await pressTwice(page, 'g');
  await page.locator('[data-row]:focus').waitFor();
  for (let i = 0; i < 5 && (await onRun()) === 0; i += 1) await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.waitForURL(runPath(SMALL_RUN));
  await page.getByText('160 rollouts').first().waitFor();
  await tabTo(page, 'Rollouts');
  await expectFocusVisible(page);
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/rollouts$/);
  await page.getByRole('table', { name: 'Rollouts of the query' }).locator('[data-row]').first().waitFor();
  await tabTo(page, 'Groups');
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/groups/);
  await page.getByRole('table', { name: 'Groups' }).locator('[data-row]').first().waitFor();
  for (let i = 0; i < 4; i += 1) await page.keyboard.press('j');
  await expectFocusVisible(page);
  await page.keyboard.press('Enter');
  await page.getByText('aligned with sample').waitFor();
  await page.keyboard.press('l');
  await page.waitForURL(/lane=1/);
  await page.evaluate(() => (document.activeElement as HTMLElement).blur());
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/rollout\//);
  await page.getByRole('feed').waitFor();
  await page.keyboard.press('x');
  await page.getByText('verdict exploit saved').waitFor();
  const id = new URL(page.url()).pathname.split('/').at(-1)!;
  const { annotations } = (await (await page.request.get(`${palestra.url}/v1/annotations?rollout=${id}`)).json()) as {
    annotations: { verdict: string }[];
  };
  expect(annotations.map(({ verdict }) => verdict)).toEqual(['exploit']);
  await page.keyboard.press('Escape');
  await page.getByText('aligned with sample').waitFor();
  expect(new URL(page.url()).searchParams.get('lane')).toBe('1');
  await page.goBack();
  await page.getByRole('table', { name: 'Groups' }).locator('[data-row]').first().waitFor();
});

test('Back restores the row and the scroll position of the Explorer', async () => {
  const { page } = watched;
  await visit(page, runPath(SMALL_RUN, '/rollouts?sort=reward'), 'of 160 rollouts');
  const table = page.getByRole('table', { name: 'Rollouts of the query' });
  await table.locator('[data-row]').first().waitFor();
  for (let i = 0; i < 45; i += 1) await page.keyboard.press('j');
  const place = () =>
    table.evaluate((element) => ({
      top: element.parentElement!.scrollTop,
      focus: document.activeElement?.getAttribute('data-index'),
      row: document.activeElement?.querySelector('a')?.getAttribute('href'),
    }));
  await expect.poll(async () => (await place()).focus).toBe('44');
  await expectFocusVisible(page);
  // The address follows when the selection rests.
  await page.waitForURL(/sel=/);
  const left = await place();
  expect(left.top).toBeGreaterThan(100);
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/rollout\//);
  await page.getByRole('feed').waitFor();
  await page.keyboard.press('Escape');
  await page.waitForURL(/sort=reward/);
  await expect.poll(place).toEqual(left);
});

describe('everywhere', () => {
  test('mod+k finds a run by a part of its name and restores the focus when it closes', async () => {
    const { page } = watched;
    await visit(page, runPath(SMALL_RUN, '/groups'), 'pass@1');
    await page.getByRole('table', { name: 'Groups' }).locator('[data-row]').first().waitFor();
    await page.keyboard.press('j');
    const before = await focused(page);
    await page.keyboard.press('Control+k');
    const dialog = page.getByRole('dialog', { name: 'Go to' });
    await dialog.getByRole('combobox').waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    await expect.poll(() => focused(page)).toBe(before);
    await page.keyboard.press('Control+k');
    await dialog.getByRole('combobox').waitFor();
    await page.keyboard.type('of the keys');
    await dialog.getByRole('option', { name: KEY_RUN, selected: true }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(runPath(KEY_RUN));
    await page.getByText('4 rollouts').first().waitFor();
    await page.keyboard.press('Control+k');
    await dialog.getByRole('combobox').waitFor();
    await page.keyboard.type('failures');
    await dialog.getByRole('option', { name: 'Failures', selected: true }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(runPath(KEY_RUN, '/failures'));
    await dialog.waitFor({ state: 'hidden' });
  });

  test('? lists the keys; a changed key replaces the default, also after a reload, and can be reset', async () => {
    const { page } = watched;
    await visit(page, runPath(KEY_RUN, '/groups'), 'pass@1');
    const rows = page.getByRole('table', { name: 'Groups' }).locator('[data-row]');
    await rows.first().waitFor();
    await page.keyboard.press('?');
    const dialog = page.getByRole('dialog', { name: 'Keyboard' });
    await dialog.getByRole('button', { name: 'Key for “score 3 of 5”: 3. Press to change it.' }).waitFor();
    await dialog.getByRole('button', { name: 'Key for “go back”: Escape. Press to change it.' }).waitFor();
    expect(await dialog.getByText('open the row').locator('..').innerText()).toMatch(/^Enter\s/);
    await dialog.getByRole('button', { name: 'Key for “next row”: j. Press to change it.' }).focus();
    await page.keyboard.press('Enter');
    await dialog.getByText('Press a key', { exact: true }).waitFor();
    await page.keyboard.press('q');
    await dialog.getByRole('button', { name: 'Key for “next row”: q. Press to change it.' }).waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    await page.reload();
    await rows.first().waitFor();
    await page.keyboard.press('j');
    expect(await rows.evaluateAll((all) => all.some((row) => row === document.activeElement))).toBe(false);
    await page.keyboard.press('q');
    await expect.poll(() => rows.first().evaluate((row) => row === document.activeElement)).toBe(true);
    await page.keyboard.press('?');
    await dialog.getByRole('button', { name: 'Key for “next row”: q. Press to change it.' }).focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Backspace');
    await dialog.getByRole('button', { name: 'Key for “next row”: j. Press to change it.' }).waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    await page.keyboard.press('j');
    await expect.poll(() => rows.nth(1).evaluate((row) => row === document.activeElement)).toBe(true);
  });

  test('/ focuses the search, where keys are text; L opens the definitions; z freezes the page', async () => {
    const { page } = watched;
    await visit(page, palestra.url, SMALL_RUN);
    await page.keyboard.press('/');
    await page.keyboard.type('jkGxz?');
    await expect.poll(() => page.getByRole('searchbox').inputValue()).toBe('jkGxz?');
    expect(await page.locator('dialog[open]').count()).toBe(0);
    await visit(page, runPath(SMALL_RUN, '/rollouts'), 'of 160 rollouts');
    await page.keyboard.press('/');
    await page.keyboard.type('lamp');
    await page.keyboard.press('Enter');
    await page.waitForURL(/find=lamp/);
    await page.goto(runPath(SMALL_RUN));
    await page.getByText('160 rollouts').first().waitFor();
    await pressShortcut(page, 'L');
    const menu = page.getByRole('menu', { name: 'Definitions of the metrics' });
    await menu.getByRole('menuitemradio', { name: /SkyRL/ }).waitFor();
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? '');
    await expect
      .poll(async () => {
        await page.keyboard.press('ArrowDown');
        return focused();
      })
      .toContain('SkyRL');
    const items = menu.getByRole('menuitemradio');
    await page.keyboard.press('End');
    await expect.poll(focused).toBe(await items.last().textContent());
    await page.keyboard.press('ArrowDown');
    await expect.poll(focused).toBe(await items.first().textContent());
    await page.keyboard.press('ArrowUp');
    await expect.poll(focused).toBe(await items.last().textContent());
    await expect
      .poll(async () => {
        await page.keyboard.press('ArrowUp');
        return focused();
      })
      .toContain('SkyRL');
    await page.keyboard.press('Enter');
    await page.waitForURL(/lens=/);
    await menu.waitFor({ state: 'detached' });
    await page.keyboard.press('z');
    const freeze = page.getByRole('button', { name: /^Frozen at \d\d:\d\d:\d\d$/ });
    await freeze.waitFor();
    expect(await freeze.getAttribute('aria-pressed')).toBe('true');
    await page.keyboard.press('z');
    await page.getByRole('button', { name: 'Freeze' }).waitFor();
  });

  test('the first Tab focuses the link to the content', async () => {
    const { page } = watched;
    await visit(page, palestra.url, SMALL_RUN);
    await page.keyboard.press('Tab');
    await expect.poll(() => focused(page)).toBe('Skip to content');
    await expectFocusVisible(page);
    await page.keyboard.press('Enter');
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('main');
  });
});

describe('lists', () => {
  test('j k gg G move the focus, x selects runs to compare', async () => {
    const { page } = watched;
    await visit(page, runPath(SMALL_RUN, '/rollouts'), 'of 160 rollouts');
    const table = page.getByRole('table', { name: 'Rollouts of the query' });
    await table.locator('[data-row]').first().waitFor();
    const index = () => page.evaluate(() => Number(document.activeElement?.getAttribute('data-index') ?? -1));
    for (const [keys, expected] of [
      [['j'], 0],
      [['j', 'j', 'j'], 3],
      [['k'], 2],
      [['G'], 159],
      [['k'], 158],
      [['gg'], 0],
      [['ArrowDown'], 1],
    ] as const) {
      for (const key of keys) await (key === 'gg' ? pressTwice(page, 'g') : page.keyboard.press(key));
      await expect.poll(index, { message: keys.join(' ') }).toBe(expected);
    }
    await visit(page, palestra.url, SMALL_RUN);
    await page.locator('[data-row]').first().waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    await expect.poll(() => page.getByRole('checkbox', { checked: true }).count()).toBe(2);
  });

  test('a key that comes before the next row is rendered moves the focus by one more row', async () => {
    const { page } = watched;
    await visit(page, runPath(SMALL_RUN, '/rollouts'), 'of 160 rollouts');
    await page.getByRole('table', { name: 'Rollouts of the query' }).locator('[data-row]').first().waitFor();
    const index = () => page.evaluate(() => Number(document.activeElement?.getAttribute('data-index') ?? -1));
    /** All keys in one task, so that nothing is rendered between them. */
    const pressAtOnce = (key: string, times: number) =>
      page.evaluate(
        ([name, count]) => {
          for (let i = 0; i < count; i += 1)
            document.activeElement!.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
        },
        [key, times] as const,
      );
    await pressAtOnce('j', 100);
    await expect.poll(index).toBe(99);
    await expectFocusVisible(page);
    await pressAtOnce('ArrowDown', 50);
    await expect.poll(index).toBe(149);
    await pressAtOnce('k', 140);
    await expect.poll(index).toBe(9);
  });
});

describe('rollout', () => {
  test('j k J K gg G go from message to message', async () => {
    const { page } = watched;
    await openRollout(page, worst.id);
    for (const [keys, expected] of [
      ['j', '#m-0'],
      ['j', '#m-1'],
      ['j', '#m-2'],
      ['k', '#m-1'],
      ['J', '#m-3'],
      ['J', '#m-5'],
      ['K', '#m-3'],
      ['G', '#m-9'],
      ['gg', '#m-0'],
    ] as const) {
      await (keys === 'gg' ? pressTwice(page, 'g') : page.keyboard.press(keys));
      await expect.poll(() => hash(page), { message: keys }).toBe(expected);
    }
  });

  test('h l [ ] { } n p open other samples, other steps and neighbours in the query', async () => {
    const { page } = watched;
    await openRollout(page, worst.id, '?q=step:1');
    for (const [key, id] of [
      ['l', best.id],
      [']', middle.id],
      ['[', best.id],
      ['h', worst.id],
      ['}', later.id],
      ['{', worst.id],
    ] as const) {
      await page.keyboard.press(key);
      await page.waitForURL((url) => url.pathname === `/rollout/${id}`);
      await addressed(page);
    }
    // Newest first: whatever they are, n and p are each other’s inverse within the query.
    const here = page.url();
    const end = page.getByText('no more in the query');
    for (const pair of [
      ['n', 'p'],
      ['p', 'n'],
    ] as const) {
      await end.waitFor({ state: 'hidden' });
      await page.keyboard.press(pair[0]);
      await expect.poll(async () => page.url() !== here || (await end.isVisible())).toBe(true);
      if (page.url() === here) continue;
      await addressed(page);
      expect(new URL(page.url()).searchParams.get('q')).toBe('step:1');
      await page.keyboard.press(pair[1]);
      await page.waitForURL(here);
      await addressed(page);
    }
  });

  test('n, p and their buttons follow the query, filter and order of the list', async () => {
    const { page } = watched;
    await visit(page, runPath(KEY_RUN, '/rollouts?steps=1&q=calls:3&sort=-reward'), 'of 4 rollouts');
    const table = page.getByRole('table', { name: 'Rollouts of the query' });
    await table.locator('[data-row]').first().waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    const at = (id: string) => page.waitForURL((url) => url.pathname === `/rollout/${id}`);
    await at(best.id);
    const address = new URL(page.url()).searchParams;
    expect([address.get('q'), address.get('sort')]).toEqual(['step:1 calls:3', '-reward']);
    const list = page.getByRole('group', { name: 'The list that it was opened from' });
    await expect.poll(() => list.getByRole('button', { name: 'Previous rollout of the list' }).isDisabled()).toBe(true);
    for (const [key, id] of [
      ['n', middle.id],
      ['n', worst.id],
      ['p', middle.id],
      ['p', best.id],
    ] as const) {
      await addressed(page);
      await page.keyboard.press(key);
      await at(id);
    }
    await addressed(page);
    await list.getByRole('button', { name: 'Next rollout of the list' }).click();
    await at(middle.id);
    await addressed(page);
    await page.keyboard.press('n');
    await at(worst.id);
    await addressed(page);
    await page.keyboard.press('n');
    await page.getByText('no more in the query').waitFor();
    await page.keyboard.press('Escape');
    await page.waitForURL(/\/rollouts\?/);
  });

  test('d e E r t f mod+f y run their commands', async () => {
    const { page } = watched;
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: palestra.url });
    await openRollout(page, worst.id);
    await page.keyboard.press('d');
    await page.waitForURL((url) => url.searchParams.get('diff') === best.id);
    await page.getByRole('complementary', { name: 'Difference' }).waitFor();
    await page.keyboard.press('d');
    await page.getByRole('complementary', { name: 'Difference' }).waitFor({ state: 'detached' });
    await pressTwice(page, 'g');
    await expect.poll(() => hash(page)).toBe('#m-0');
    await page.keyboard.press('e');
    await page.getByRole('button', { name: 'Hide system message' }).waitFor();
    await page.keyboard.press('e');
    await page.getByRole('button', { name: 'Hide system message' }).waitFor({ state: 'detached' });
    await page.keyboard.press('r');
    await page.getByRole('button', { name: 'Hide reasoning' }).waitFor();
    await page.keyboard.press('r');
    await page.getByRole('button', { name: 'Hide reasoning' }).waitFor({ state: 'detached' });
    await page.keyboard.press('E');
    await page.getByRole('button', { name: 'Hide system message' }).waitFor();
    await page.keyboard.press('f');
    await page.getByRole('navigation', { name: 'Outline' }).waitFor({ state: 'detached' });
    await page.keyboard.press('f');
    await page.getByRole('navigation', { name: 'Outline' }).waitFor();
    await page.keyboard.press('Control+f');
    await page.getByRole('textbox', { name: 'Find in this rollout' }).waitFor();
    await page.keyboard.type('nobody');
    await page.getByText(/1 of \d messages/).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('search').waitFor({ state: 'detached' });
    await page.keyboard.press('y');
    await page.getByText('link copied').waitFor();
    expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(page.url());
    const scroller = page.getByRole('region', { name: 'Transcript, scrollable' });
    await page.setViewportSize({ width: 1280, height: 420 });
    await page.keyboard.press('t');
    await expect.poll(() => scroller.evaluate((one) => one.scrollHeight - one.scrollTop - one.clientHeight)).toBeLessThan(2);
  });

  test('1 to 5 set a score, g b x set a verdict', async () => {
    const { page } = watched;
    await openRollout(page, middle.id);
    for (const score of ['1', '2', '3', '4', '5']) {
      await page.keyboard.press(score);
      await page.getByText(`score ${score} saved`).waitFor();
    }
    for (const [key, verdict] of [
      ['b', 'bad'],
      ['x', 'exploit'],
      ['g', 'good'],
    ] as const) {
      await page.keyboard.press(key);
      await page.getByText(`verdict ${verdict} saved`).waitFor();
    }
    await page.getByText('good, 5 of 5').waitFor();
    const answer = await page.request.get(`${palestra.url}/v1/annotations?rollout=${middle.id}`);
    const { annotations } = (await answer.json()) as { annotations: { verdict: string | null; score: number | null }[] };
    expect(annotations.map(({ verdict, score }) => verdict ?? score)).toEqual(['good', 'exploit', 'bad', 5, 4, 3, 2, 1]);
  });
});

test('keys have no effect while a dialog is open', async () => {
  const { page } = watched;
  await openRollout(page, best.id, '#m-3');
  await pressShortcut(page, '?');
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  for (const key of ['j', 'G', 'x', 'd', ']']) await page.keyboard.press(key);
  await loaded(page);
  expect(new URL(page.url()).pathname + hash(page)).toBe(`/rollout/${best.id}#m-3`);
  await page.keyboard.press('Escape');
  await page.getByRole('dialog', { name: 'Keyboard' }).waitFor({ state: 'hidden' });
  const answer = await page.request.get(`${palestra.url}/v1/annotations?rollout=${best.id}`);
  expect(((await answer.json()) as { annotations: unknown[] }).annotations).toEqual([]);
});

import type { Browser, Page } from 'playwright-core';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { sendEvents } from '../support/fixtures/events.mjs';
import { SMALL_RUN, smallRun } from '../support/fixtures/rollouts.mjs';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { launch, openPage, pressShortcut, pressTwice, type View, visit, type Watched } from './browser.ts';
import { KEY_RUN, keyRun } from './keyboard.data.ts';

/** Every command of frame/keymap.ts, and the way from the runs to a verdict without a pointer. */
let palestra: SharedPalestra;
let browser: Browser;
let watched: Watched;
const light: View = { width: 1280, theme: 'light' };
const small = smallRun();

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  await sendEvents(
    palestra,
    [...small, ...keyRun].flatMap(({ events }) => events),
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

  test('mod+k keeps what is typed while its code loads', async () => {
    const { page } = watched;
    let load = () => {};
    const held = new Promise<void>((resolve) => (load = resolve));
    await page.route(/\/PaletteDialog[^/]*\.js$/, async (route) => {
      await held;
      await route.continue();
    });
    await visit(page, runPath(SMALL_RUN, '/groups'), 'pass@1');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('of the k');
    load();
    const dialog = page.getByRole('dialog', { name: 'Go to' });
    await dialog.getByRole('combobox').waitFor();
    await page.keyboard.type('eys');
    await dialog.getByRole('option', { name: KEY_RUN, selected: true }).waitFor();
    expect(await dialog.getByRole('combobox').inputValue()).toBe('of the keys');
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

import type { Browser, Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { sendEvents } from '../support/fixtures/events.mjs';
import { HOSTILE_RUN, hostileRollouts } from '../support/fixtures/hostile.mjs';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { uploadRollout } from './upload.ts';
import { atRest, launch, loaded, openPage, shoot, type View, visit, type Watched } from './browser.ts';

/** Every page shows text of trainers, models and tools as text, not as elements, and sends no request to other origins. */
let palestra: SharedPalestra;
let browser: Browser;
const light: View = { width: 1280, theme: 'light' };
const LONGEST_LINE = 10_000;
const [bad, good] = hostileRollouts();
const ids = { group: '', task: '' };

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  for (const { events } of [bad!, good!]) await sendEvents(palestra, events);
  const headers = { 'x-api-key': palestra.apiKey };
  const answer = await fetch(`${palestra.url}/v1/runs/${encodeURIComponent(HOSTILE_RUN)}/groups`, { headers });
  const { groups } = (await answer.json()) as { groups: { key: string; task: { id: string } }[] };
  ids.group = groups[0]!.key;
  ids.task = groups[0]!.task.id;
});

/** Expectations for every page. */
async function expectInert(page: Page): Promise<void> {
  const found = await page.evaluate((longest) => {
    const walker = document.createTreeWalker(document.querySelector('main')!, NodeFilter.SHOW_TEXT);
    let line = 0;
    while (walker.nextNode()) line = Math.max(line, ...walker.currentNode.textContent!.split('\n').map(({ length }) => length));
    const elements = (selector: string) => [...document.querySelectorAll(selector)];
    return {
      ran: 'pwned' in globalThis || 'pwned' in Object.prototype,
      title: document.title.startsWith('pwned'),
      // The shell's own script and style sheet are of this origin, its own inputs have names that are not those of the text.
      elements: elements(
        'main :is(script, style, link, iframe, object, embed, video, audio, base, meta, math, mglyph, [onerror], [onload])',
      ).map(({ outerHTML }) => outerHTML),
      images: elements('main img').map((image) => image.getAttribute('src')),
      links: elements('a[href]').flatMap((link) =>
        /^(https?:|\/|#|$)/.test(link.getAttribute('href')!) ? [] : [link.getAttribute('href')],
      ),
      unsafe: elements('a[href^=http]').filter((link) => link.getAttribute('rel') !== 'noopener noreferrer nofollow').length,
      clobbered: !(document.body instanceof HTMLElement) || typeof document.cookie !== 'string',
      tooLong: line > longest ? line : 0,
      unseen: /[\u202a-\u202e\u2066-\u2069\u200b\u001b\u009b]/.exec(document.body.innerText)?.[0]?.codePointAt(0) ?? null,
    };
  }, LONGEST_LINE);
  expect(found).toEqual({
    ran: false,
    title: false,
    elements: [],
    images: [],
    links: [],
    unsafe: 0,
    clobbered: false,
    tooLong: 0,
    unseen: null,
  });
}

const ofRun = (rest = '') => `/${palestra.namespace}/runs/${encodeURIComponent(HOSTILE_RUN)}${rest}`;

test('a hostile transcript stays text and causes no request to other origins', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  page.on('dialog', (dialog) => complaints.push(`dialog ${dialog.message()}`));
  page.on('popup', () => complaints.push('popup'));
  await visit(page, `${palestra.url}/rollout/${bad!.id}`, 'window.pwned = 1');
  const address = page.url();
  // Everything open: reasoning, system message, long results.
  await page.keyboard.press('E');
  const scroller = page.getByRole('region', { name: 'Transcript, scrollable' });
  let text = '';
  for (let i = 0; i < 60; i += 1) {
    await atRest(page);
    await expect.poll(() => page.getByRole('feed').locator('.skeleton, [aria-busy=true]').count()).toBe(0);
    text += await page.getByRole('feed').innerText();
    await expectInert(page);
    const atEnd = await scroller.evaluate((one) => {
      const before = one.scrollTop;
      one.scrollTop += 600;
      return one.scrollTop === before;
    });
    if (atEnd) break;
  }
  for (const shown of [
    '<script>window.pwned = 1</script>',
    'https://evil.example/b.png',
    '⟦RLO⟧',
    '⟦ZWSP⟧',
    '__proto__',
    '<b>not JSON</b>',
    'not a link',
    'window.pwned=22',
    '=cmd|"/c calc"!A1',
    'The hostile one ends.',
  ])
    expect(text, shown).toContain(shown);
  await scroller.evaluate((one) => (one.scrollTop = 0));
  await page.keyboard.press('Control+f');
  await page.getByRole('textbox', { name: 'Find in this rollout' }).fill('red alert');
  await page.locator('.ansi-1', { hasText: 'red alert' }).first().waitFor();
  await expectInert(page);
  await shoot(page, 'hostile-1280-light');
  expect(page.url().replace(/#.*$/, '')).toBe(address);
  expect(complaints).toEqual([]);
  await close();
});

test('Markdown that is nested too deeply for the parser is shown unformatted', async () => {
  const deep = ['>'.repeat(4_000), '- '.repeat(4_000), '1. '.repeat(4_000)];
  const id = await uploadRollout(palestra, {
    runName: 'deep',
    messages: [
      ...deep.map((nested) => ({ type: 'assistant_message' as const, content: `${nested} at the bottom` })),
      { type: 'assistant_message', content: `> > **three** deep\n\n${'-'.repeat(200)}\n\nand a line` },
    ],
  });
  const { page, complaints, close } = await openPage(browser, palestra, light);
  await visit(page, `${palestra.url}/rollout/${id}`, 'three');
  expect(await page.getByRole('feed').locator('blockquote blockquote strong').innerText()).toBe('three');
  await page.keyboard.press('E');
  await expect.poll(() => page.getByRole('feed').getByText('at the bottom').count()).toBe(3);
  expect(complaints).toEqual([]);
  await close();
});

test('Trusted Types reject markup from every part of the page', async () => {
  const { page, close } = await openPage(browser, palestra, light);
  const answer = await page.goto(`${palestra.url}/rollout/${bad!.id}`);
  const policy = (await answer!.headerValue('content-security-policy'))!;
  for (const rule of [
    "default-src 'none'",
    "require-trusted-types-for 'script'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'self'",
  ])
    expect(policy).toContain(rule);
  expect(policy).not.toMatch(/unsafe|https?:|\*/);
  const taken = await page.evaluate(() => {
    try {
      document.createElement('div').innerHTML = '<b>x</b>';
      return true;
    } catch {
      return false;
    }
  });
  expect(taken).toBe(false);
  await close();
});

describe('every page with untrusted text', () => {
  const places: [name: string, path: () => string, text: string | RegExp][] = [
    ['runs', () => '/', 'hostile <img src=x'],
    ['runs, searched', () => `/${palestra.namespace}/runs?q=${encodeURIComponent('<img src=x')}`, 'hostile <img src=x'],
    ['overview', () => ofRun(), 'hostile <img src=x'],
    ['explorer', () => ofRun('/rollouts'), 'of 2 rollouts'],
    ['explorer, preview', () => ofRun(`/rollouts?sel=${bad!.id}`), 'of 2 rollouts'],
    ['explorer, find', () => ofRun('/rollouts?find=pwned'), 'Hits per step'],
    ['groups', () => ofRun('/groups'), 'pass@1'],
    ['group, lanes', () => ofRun(`/groups/${ids.group}?view=lanes`), 'aligned with sample'],
    ['group, matrix', () => ofRun(`/groups/${ids.group}?view=matrix`), 'aligned with sample'],
    ['tasks', () => ofRun('/tasks'), 'hostile <img src=x'],
    ['task', () => ofRun(`/tasks/${encodeURIComponent(ids.task)}`), 'solved'],
    ['tools', () => ofRun('/tools'), 'deep'],
    ['failures', () => ofRun('/failures'), 'hostile <img src=x'],
    ['config', () => ofRun('/config'), 'hostile <img src=x'],
    ['rollout, task', () => `/rollout/${bad!.id}?tab=task`, 'Task spec'],
    ['rollout, tools', () => `/rollout/${bad!.id}?tab=tools`, 'Session ledger'],
    ['rollout, raw', () => `/rollout/${bad!.id}?tab=raw#m-4`, 'Message 4'],
    ['rollout, difference', () => `/rollout/${bad!.id}?diff=${good!.id}`, 'First divergence'],
    ['rollout, for paper', () => `/rollout/${bad!.id}?print`, 'The hostile one ends.'],
    ['compare', () => `/compare?rollouts=${encodeURIComponent(JSON.stringify([bad!.id, good!.id]))}`, 'ompare'],
    ['environments', () => '/environments', 'nvironment'],
    ['exports', () => '/exports', 'Exports'],
  ];
  let watched: Watched;
  beforeAll(async () => {
    watched = await openPage(browser, palestra, light);
    const { page, complaints } = watched;
    page.on('dialog', (dialog) => complaints.push(`dialog ${dialog.message()}`));
    page.on('popup', () => complaints.push('popup'));
    return watched.close;
  });

  test.each(places)('%s', async (_, path, text) => {
    const { page, complaints } = watched;
    complaints.length = 0;
    await page.goto(palestra.url + path(), { waitUntil: 'domcontentloaded' });
    await page.getByText(text).first().waitFor();
    await loaded(page);
    await expectInert(page);
    expect(new URL(page.url()).origin).toBe(palestra.url);
    expect(complaints).toEqual([]);
  });
});

import type { Browser, Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { axeFaults, launch, loaded, openPage, shoot, type View, visit, type Watched } from './browser.ts';
import { type UploadedMessage, uploadRollout } from './upload.ts';

/** Bodies of messages: formulas, JSON and the length of lines. */
let palestra: SharedPalestra;
let browser: Browser;
const light: View = { width: 1280, theme: 'light' };
const ids = { formulas: '', hostile: '', json: '', large: '' };

const call = (id: string, args: object, result: string): UploadedMessage[] => [
  { type: 'tool_call', name: 'query', callId: id, content: JSON.stringify(args) },
  { type: 'tool_result', callId: id, content: result },
];

const sentence =
  'The gardener saw the lamp in the orangery go out a little after nine, and he is certain of the time because the last train had just left. ';
const formulas: UploadedMessage[] = [
  {
    type: 'system_message',
    content: 'Solve the problem step by step and put the answer into a box.',
  },
  {
    type: 'user_message',
    content:
      'A ticket costs $5 and the train costs $10 more. Let $x_1$ be the price, with $\\alpha \\le x_1 < 2\\pi$. Evaluate\n\\[\n\\int_0^\\infty e^{-x^2}\\,dx\n\\]',
  },
  {
    type: 'assistant_message',
    content: `${sentence.repeat(4)}\n\nWe use \\(a^2 + b^2 = c^2\\), so\n\n$$\\begin{aligned} f(x) &= \\sum_{i=1}^{n} \\frac{x_i}{\\sqrt{1 + x_i^2}} \\\\ &= \\begin{pmatrix} 1 & 0 \\\\ 0 & 1 \\end{pmatrix} \\end{aligned}$$\n\nThe answer is $\\boxed{\\frac{\\sqrt{\\pi}}{2}}$.\n\n\`\`\`python\nprice = "$x$ is not a formula"\n\`\`\`\n\nNeither is \`$y$\`.\n\n| name | value |\n|---|---|\n| area | $\\pi r^2$ |`,
  },
];

const hostile: UploadedMessage[] = [
  '$\\href{javascript:window.pwned=1}{click me}$',
  '$\\htmlClass{fixed}{a}\\htmlStyle{position:fixed;inset:0}{b}$',
  '$\\def\\a{\\a\\a}\\a$',
  '$\\includegraphics{https://evil.example/a.png}$',
  `$${'\\frac{'.repeat(400)}x${'}{y}'.repeat(400)}$`,
  `$\\sqrt{x} \\kern{-900em} \\rule{900em}{900em} \\raisebox{-900em}{low} \\color{white}\\text{hidden}$`,
  '$</math><img src=x onerror=window.pwned=1>$ $\\text{<img src=x onerror=window.pwned=1>}$',
  `${'$x_1$ '.repeat(10_000)}`,
  'The last hostile formula.',
].map((content) => ({ type: 'assistant_message', content }));

const people = Array.from({ length: 14 }, (_, i) => ({
  name: `Person ${i}`,
  about: 'Came for the harvest and stayed for the winter. '.repeat(4),
  alibi: { place: { room: { detail: i === 11 ? 'in the Quixotic cellar' : 'in the hall' } } },
}));
const json: UploadedMessage[] = [
  { type: 'user_message', content: 'Look everyone up.' },
  ...call(
    'a',
    {
      filter: {
        and: [
          { field: 'name', like: 'Person' },
          { field: 'age', greater: 30, unit: 'years' },
        ],
      },
      limit: 20,
      tags: [1, 2],
    },
    JSON.stringify({ total: people.length, people, next: null, complete: true }),
  ),
  ...call('b', { q: 'short' }, JSON.stringify({ rows: [{ id: 1 }], 'odd key': 'x' })),
];

const large: UploadedMessage[] = [
  { type: 'user_message', content: 'Large values.' },
  ...call('c', {}, JSON.stringify(Array.from({ length: 60_000 }, (_, i) => ({ id: i, name: `row ${i}`, text: 'x'.repeat(60) })))),
  ...call('d', {}, `${'['.repeat(10_000)}${']'.repeat(10_000)}`),
  ...call('e', {}, JSON.stringify(Array.from({ length: 900 }, (_, i) => i))),
];

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  for (const [name, messages] of Object.entries({ formulas, hostile, json, large }))
    ids[name as keyof typeof ids] = await uploadRollout(palestra, { runName: 'transcript suite', rolloutName: name, messages });
});

const feed = (page: Page) => page.getByRole('feed');
const open = async (view: View, id: string, text: string): Promise<Watched> => {
  const watched = await openPage(browser, palestra, view);
  await visit(watched.page, `${palestra.url}/rollout/${id}`, text);
  return watched;
};

/** Expectations for a page with formulas: nothing ran, nothing links, is styled or covers other parts. */
const inert = (page: Page) =>
  page.evaluate(() => ({
    ran: 'pwned' in globalThis,
    elements: [...document.querySelectorAll('main .prose :is(img, script, svg, iframe, [style], [id], [onerror], a:not([rel]))')].map(
      ({ outerHTML }) => outerHTML,
    ),
  }));

test('formulas are MathML; amounts of money and code stay text', async () => {
  const { page, complaints, close } = await open(light, ids.formulas, 'certain of the time');
  await expect.poll(() => feed(page).locator('math').count()).toBe(7);
  expect(await feed(page).getByText('A ticket costs $5 and the train costs $10 more.').count()).toBe(1);
  expect(await feed(page).locator('pre code').innerText()).toBe('price = "$x$ is not a formula"');
  expect(await feed(page).getByText('$y$', { exact: true }).count()).toBe(1);
  expect(await feed(page).locator('td math msup').count()).toBe(1);
  // The browser lays the elements out as formulas: numerator above denominator, a frame around the answer.
  const parts = await feed(page)
    .locator('mfrac')
    .first()
    .evaluate((fraction) => [...fraction.children].map((part) => part.getBoundingClientRect().top));
  expect(parts[0]).toBeLessThan(parts[1]!);
  const frame = feed(page).locator('menclose');
  expect(await frame.evaluate((element) => getComputedStyle(element).borderTopWidth)).toBe('1px');
  // Brackets are as tall as the matrix between them.
  await page.evaluate(() => document.fonts.ready.then(() => true));
  const heights = () =>
    feed(page)
      .locator('mtable mtable')
      .evaluate((matrix) => [matrix.previousElementSibling!, matrix].map((part) => part.getBoundingClientRect().height));
  await expect
    .poll(async () => {
      const [bracket, matrix] = await heights();
      return bracket! / matrix!;
    })
    .toBeGreaterThan(0.9);
  // Readers find and copy the source.
  expect(await feed(page).locator('.formula[title*="boxed"]').getAttribute('title')).toBe('$\\boxed{\\frac{\\sqrt{\\pi}}{2}}$');
  expect(await axeFaults(page)).toEqual([]);
  await shoot(page, 'transcript-formulas-1280-light');
  expect(complaints).toEqual([]);
  await close();
});

test('a transcript without formulas loads neither their renderer nor their font', async () => {
  const { page, close } = await openPage(browser, palestra, light);
  const files: string[] = [];
  page.on('request', (request) => files.push(request.url()));
  await visit(page, `${palestra.url}/rollout/${ids.json}`, 'Look everyone up.');
  await loaded(page);
  const ofFormulas = () => files.filter((file) => /formula-renderer.*js$|stix-two-math.*woff2$/.test(file));
  expect(ofFormulas()).toEqual([]);
  await visit(page, `${palestra.url}/rollout/${ids.formulas}`, 'certain of the time');
  await expect.poll(() => ofFormulas().length).toBe(2);
  await close();
});

test('hostile formulas are shown as source or stay inside of their message', async () => {
  const { page, complaints, close } = await open(light, ids.hostile, 'The last hostile formula.');
  await expect.poll(() => feed(page).locator('math').count()).toBeGreaterThan(0);
  for (const source of ['\\href{javascript:window.pwned=1}{click me}', '\\htmlStyle{position:fixed;inset:0}{b}', '\\def\\a{\\a\\a}\\a'])
    expect(await feed(page).locator('.formula code', { hasText: source }).count(), source).toBe(1);
  expect(await inert(page)).toEqual({ ran: false, elements: [] });
  // Negative spaces do not move parts over other messages: what is painted at each message belongs to it.
  const overlapping = await page.evaluate(() =>
    [...document.querySelectorAll('article')].flatMap((article) => {
      const box = article.getBoundingClientRect();
      const at = document.elementFromPoint(box.left + 200, box.top + 14);
      return at === null || article.contains(at) || box.bottom > innerHeight ? [] : [at.outerHTML.slice(0, 200)];
    }),
  );
  expect(overlapping).toEqual([]);
  await shoot(page, 'transcript-hostile-formulas-1280-light');
  expect(complaints).toEqual([]);
  await close();
});

test('JSON is a tree: the keyboard opens it, values and paths can be copied, the text as sent is a click away', async () => {
  const { page, complaints, close } = await open(light, ids.json, 'Look everyone up.');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: palestra.url });
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  const result = feed(page).getByRole('tree').nth(1);
  const row = (name: RegExp | string) => result.getByRole('treeitem', { name });
  await expect.poll(() => result.getByRole('treeitem').count()).toBe(5 + people.length);
  await row(/^.?people/).focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect.poll(copied).toBe('Person 0');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect.poll(copied).toBe('$.people[0].name');
  await row(/name: "Person 0"/).focus();
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowLeft');
  await expect.poll(() => result.getByText('name: "Person 0"', { exact: true }).count()).toBe(0);
  // Arguments are trees too, unless they fit into a line.
  await feed(page).getByRole('tree').first().getByText('and').waitFor();
  await feed(page).getByText('[1,2]', { exact: true }).waitFor();
  expect(await axeFaults(page)).toEqual([]);
  await shoot(page, 'transcript-json-1280-light');
  await feed(page).getByRole('button', { name: 'Show as sent' }).nth(1).click();
  await feed(page).getByText('"complete":true}').waitFor();
  expect(complaints).toEqual([]);
  await close();
});

test('a search opens the closed parts of a tree that have a hit, and shows the text if only that has it', async () => {
  const { page, complaints, close } = await open(light, ids.json, 'Look everyone up.');
  const found = () => page.evaluate(() => [...(CSS.highlights.get('find') ?? [])].map(String));
  expect(await feed(page).getByText('Quixotic').count()).toBe(0);
  await page.keyboard.press('Control+f');
  await page.getByRole('textbox', { name: 'Find in this rollout' }).fill('quixotic');
  await feed(page).getByText('in the Quixotic cellar').waitFor();
  await expect.poll(found).toEqual(['Quixotic']);
  await page.getByRole('textbox', { name: 'Find in this rollout' }).fill('"complete":true');
  await feed(page).getByText('"complete":true}').waitFor();
  await expect.poll(found).toEqual(['"complete":true']);
  expect(complaints).toEqual([]);
  await close();
});

test('JSON of 6 MB and JSON of 10 000 levels are text, and a list of 900 numbers shows its beginning', async () => {
  const { page, complaints, close } = await open(light, ids.large, 'Large values.');
  await feed(page).getByText('[[[[[[').first().waitFor();
  await feed(page)
    .getByRole('button', { name: /^Show raw lines/ })
    .click();
  // Its height is final when the lines are there.
  await feed(page)
    .getByRole('region', { name: /^Raw lines, part 1 of/ })
    .getByText('"name":"row 0"')
    .waitFor();
  const scroller = page.getByRole('region', { name: 'Transcript, scrollable' });
  await scroller.evaluate((element) => (element.scrollTop = element.scrollHeight));
  const tree = feed(page).getByRole('tree').last();
  await tree.getByText(/^Show 850 more$/).waitFor();
  expect(await tree.getByRole('treeitem').count()).toBe(52);
  expect(complaints).toEqual([]);
  await close();
});

test('expand all opens the raw lines of a very large text, and its button closes and opens them', async () => {
  const { page, complaints, close } = await open(light, ids.large, 'Large values.');
  const button = (name: RegExp | string) => feed(page).getByRole('button', { name }).first();
  const lines = feed(page).getByRole('region', { name: /^Raw lines, part 1 of/ });
  await button(/^Show raw lines/).waitFor();
  await page.keyboard.press('E');
  await lines.getByText('"name":"row 0"').waitFor();
  await button('Show less').click();
  await lines.waitFor({ state: 'detached' });
  await button(/^Show raw lines/).click();
  await lines.getByText('"name":"row 0"').waitFor();
  await page.keyboard.press('E');
  await lines.waitFor({ state: 'detached' });
  expect(complaints).toEqual([]);
  await close();
});

/** Characters per full line of the wrapped paragraph. */
const lineLengths = (page: Page) =>
  feed(page)
    .locator('p', { hasText: 'certain of the time' })
    .first()
    .evaluate((paragraph) => {
      const text = paragraph.firstChild as Text;
      const range = document.createRange();
      const tops: number[] = [];
      for (let i = 0; i < text.length; i += 1) {
        range.setStart(text, i);
        range.setEnd(text, i + 1);
        const box = range.getClientRects()[0];
        if (box) tops.push(Math.round(box.bottom));
      }
      const counts = [...new Set(tops)].map((top) => tops.filter((other) => other === top).length);
      return counts.slice(0, -1);
    });

test.each([390, 1280, 1440, 1920])('a line of text has 60 to 75 characters at %i px, or the width of a phone', async (width) => {
  const { page, close } = await openPage(browser, palestra, light);
  await page.setViewportSize({ width, height: 900 });
  await visit(page, `${palestra.url}/rollout/${ids.formulas}`, 'certain of the time');
  await loaded(page);
  const lines = await lineLengths(page);
  const mean = lines.reduce((sum, length) => sum + length, 0) / lines.length;
  const content = await feed(page)
    .locator('pre')
    .evaluate((element) => element.getBoundingClientRect().width);
  if (width === 390) expect(content).toBeGreaterThan(340);
  else {
    expect(mean, `${lines.join(' ')}`).toBeGreaterThanOrEqual(60);
    expect(Math.max(...lines)).toBeLessThanOrEqual(75);
  }
  await close();
});

import { randomUUID } from 'node:crypto';
import type { Browser, Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import {
  atRest,
  expectSound,
  expectSoundInEveryView,
  launch,
  openPage,
  pressTwice,
  settled,
  shoot,
  type View,
  visit,
  type Watched,
} from './browser.ts';
import { messageEvents, type UploadedMessage, uploadEvents, uploadRollout } from './upload.ts';

let palestra: SharedPalestra;
let browser: Browser;
const runName = 'viewer suite';
const narrow: View = { width: 1280, theme: 'light' };
const ids = { good: '', bad: '', next: '', rich: '', graded: '' };

const call = (id: string, name: string, args: object, result: string, more: Partial<UploadedMessage> = {}): UploadedMessage[] => [
  { type: 'tool_call', name, callId: id, content: JSON.stringify(args) },
  { type: 'tool_result', callId: id, content: result, ...more },
];

const opening: UploadedMessage[] = [
  { type: 'system_message', content: 'You are a detective. Ask, search, then accuse once. '.repeat(12) },
  { type: 'user_message', content: 'Find **who** did it.' },
  ...call('a', 'search', { place: 'orangery' }, 'A letter of Ada Finch.', { reward: 0.02 }),
];
const good: UploadedMessage[] = [
  ...opening,
  ...call('b', 'interview', { witness: 'the gardener', about: 'Ada Finch' }, 'He saw her at nine.'),
  ...call('c', 'accuse', { suspect: 'Everett Moss' }, 'He lowers his eyes.', { reward: 1, isFinished: true }),
];
const bad: UploadedMessage[] = [
  ...opening,
  { type: 'reasoning', content: 'The lamp was lit at nine. '.repeat(30) },
  ...call('b', 'interview', { witness: 'the gardener', about: 'Tom Reed' }, 'ValueError: nobody of that name', {
    metadata: { is_error: true },
  }),
  { type: 'user_message', content: 'No tool call detected. Please use the provided tools to complete the task.' },
  ...call('c', 'accuse', { suspect: 'Ada Finch' }, 'The trail is cold.', { reward: 0, isFinished: true }),
];
const rich: UploadedMessage[] = [
  { type: 'user_message', content: 'Look at the table.' },
  ...call(
    'j',
    'table',
    { rows: 3 },
    JSON.stringify({ rows: [{ name: 'Ada', age: 31, deep: { a: { b: { c: 'hidden until opened' } } } }] }),
  ),
  ...call('l', 'log', {}, Array.from({ length: 900 }, (_, i) => `\u001b[3${i % 8}mline ${i}\u001b[0m`).join('\n')),
  { type: 'assistant_message', content: 'lost one' },
  { type: 'assistant_message', content: 'lost two' },
  { type: 'assistant_message', content: 'I saw it.' },
  ...call('i', 'look', {}, `data:image/png;base64,${picture()}`),
  ...call('m', 'dump', {}, `begin ${'0123456789abcdef'.repeat(75_000)} end`),
];

/** A valid PNG that is stored as an object: one pixel and a long comment. */
function picture(): string {
  const pixel = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==', 'base64');
  return Buffer.concat([pixel, Buffer.alloc(6_000)]).toString('base64');
}

beforeAll(async () => {
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  const group = { runName, task: 1, step: 5, n: 2 };
  ids.good = await uploadRollout(palestra, { ...group, sample: 0, messages: good });
  ids.bad = await uploadRollout(palestra, { ...group, sample: 1, messages: bad, metadata: { reward_total: 0.5 } });
  const graded = {
    metadata: { reward_components: { correct: 0, format: 0.1 }, parent_rollout: ids.good },
    taskSpec: { question: 'Who?', answer: 'Everett <b>Moss</b>' },
  };
  ids.graded = await uploadRollout(palestra, { runName, task: 9, step: 5, messages: bad, ...graded });
  ids.next = await uploadRollout(palestra, { ...group, step: 6, sample: 1, messages: good });
  ids.rich = await uploadRollout(palestra, { runName, task: 2, step: 5, messages: rich, skip: [5, 6] });
});

const open = (watched: Watched, id: string, text: string, hash = '') => visit(watched.page, `${palestra.url}/rollout/${id}${hash}`, text);
const article = (page: Page, anchor: number) => page.locator(`article[data-anchor="${anchor}"]`);

test('a card shows arguments, result, error and reward; long results, JSON, terminal text, images and gaps have their own form', async () => {
  const watched = await openPage(browser, palestra, narrow);
  const { page, complaints } = watched;
  await open(watched, ids.rich, 'Look at the table.');
  const json = article(page, 1);
  await json.getByRole('treeitem', { name: /rows: \[ 1 \]$/ }).waitFor();
  expect(await json.getByRole('treeitem', { name: /name: "Ada"$/ }).count()).toBe(0);
  await json.getByRole('treeitem', { name: /0: \{name: "Ada"/ }).click();
  await json.getByRole('treeitem', { name: /name: "Ada"$/ }).waitFor();
  await article(page, 3)
    .getByRole('button', { name: /Show all \(.*kB, 900 lines\)/ })
    .click();
  await article(page, 3).getByText('line 899').waitFor();
  await expect.poll(() => article(page, 3).locator('.ansi-1').count()).toBeGreaterThan(50);
  await page.getByRole('button', { name: '2 missing' }).click();
  await page.getByText('2 messages missing (5–6)').waitFor();
  const image = page.getByRole('img', { name: /Image 1 of the message/ });
  await image.scrollIntoViewIfNeeded();
  await image.click();
  const dialog = page.getByRole('dialog', { name: 'Image' });
  await dialog.waitFor();
  await expect.poll(() => dialog.locator('img').evaluate((one: HTMLImageElement) => one.naturalWidth)).toBe(1);
  await page.keyboard.press('Escape');
  await page.keyboard.press('G');
  await page.getByRole('button', { name: 'Show raw lines (1.2 MB)' }).waitFor();
  await expectSound(page);
  await shoot(page, 'rollout-rich-1280-light');
  expect(complaints).toEqual([]);
  await watched.close();
});

test('d goes to the first divergence from the best sample and shows how the texts differ', async () => {
  const watched = await openPage(browser, palestra, { width: 1920, theme: 'dark' });
  const { page, complaints } = watched;
  await open(watched, ids.bad, 'Find who did it.');
  await page.getByText('Best sample').waitFor();
  await page.keyboard.press('d');
  await page.waitForURL((url) => url.searchParams.get('diff') === ids.good && url.hash === '#m-5');
  const panel = page.getByRole('complementary', { name: 'Difference' });
  await panel.getByText('The first action is equal').waitFor();
  await panel.getByLabel('Text of the first divergence').getByText('Tom').waitFor();
  await expect.poll(() => panel.locator('del', { hasText: /Tom|Reed/ }).count()).toBeGreaterThan(0);
  await expect.poll(() => panel.locator('ins', { hasText: /Ada|Finch/ }).count()).toBeGreaterThan(0);
  await expect.poll(() => article(page, 5).getAttribute('aria-current')).toBe('true');
  await shoot(page, 'rollout-diff-1920-dark');
  // The address alone brings it back.
  await page.reload();
  await panel.getByText('first divergence').waitFor();
  await page.keyboard.press('d');
  await panel.waitFor({ state: 'detached' });
  expect(complaints).toEqual([]);
  await watched.close();
});

test('keys move between turns, marks, samples, steps and the query, expand rows, and go back', async () => {
  const watched = await openPage(browser, palestra, narrow);
  const { page, complaints } = watched;
  await open(watched, ids.bad, 'Find who did it.', '?q=step:5');
  const hash = () => new URL(page.url()).hash;
  const press = async (key: string, expected: string) => {
    await page.keyboard.press(key);
    await expect.poll(hash, { message: key }).toBe(expected);
  };
  await press('j', '#m-0');
  await press('j', '#m-1');
  await press('j', '#m-2');
  await press('k', '#m-1');
  await press('J', '#m-2');
  await press('J', '#m-5');
  await press('K', '#m-2');
  await press('G', '#m-8');
  await pressTwice(page, 'g');
  await expect.poll(hash).toBe('#m-0');
  await atRest(page);
  await page.keyboard.press('e');
  await page.getByRole('button', { name: 'Hide system message' }).waitFor();
  await page.keyboard.press('r');
  await page.getByRole('button', { name: 'Hide reasoning' }).waitFor();
  await page.keyboard.press('E');
  await page.keyboard.press('f');
  await page.getByRole('navigation', { name: 'Outline' }).waitFor({ state: 'detached' });
  await page.keyboard.press('f');
  await page.getByRole('navigation', { name: 'Outline' }).waitFor();
  const at = (id: string) => page.waitForURL((url) => url.pathname === `/rollout/${id}`);
  await page.keyboard.press('[');
  await at(ids.good);
  await page.getByRole('article').getByText('He lowers his eyes.').waitFor();
  await page.keyboard.press('l');
  await at(ids.bad);
  await page.getByRole('article').getByText('The trail is cold.').waitFor();
  await page.keyboard.press('}');
  await at(ids.next);
  await page.getByRole('article').getByText('He lowers his eyes.').waitFor();
  await page.keyboard.press('{');
  await at(ids.bad);
  await page.getByRole('article').getByText('The trail is cold.').waitFor();
  // Newest first: good was uploaded before bad, both at step 5, and the query is kept in the address.
  expect(new URL(page.url()).searchParams.get('q')).toBe('step:5');
  await page.keyboard.press('n');
  await at(ids.good);
  await page.getByRole('article').getByText('He lowers his eyes.').waitFor();
  await page.keyboard.press('p');
  await at(ids.bad);
  expect(complaints).toEqual([]);
  await watched.close();
});

test('a verdict by key and a note on messages are saved, shown and deleted', async () => {
  const watched = await openPage(browser, palestra, narrow);
  const { page, complaints } = watched;
  await open(watched, ids.bad, 'Find who did it.', '?tab=notes#m-5');
  await page.keyboard.press('x');
  await page.getByText('verdict exploit saved').waitFor();
  await page.keyboard.press('4');
  await page.getByText('score 4 saved').waitFor();
  // One g alone is a verdict after 300 ms.
  await page.keyboard.press('g');
  await page.getByText('verdict good saved').waitFor();
  await page.getByRole('textbox', { name: 'Note' }).fill('asks for <b>nobody</b>');
  await page.getByRole('textbox', { name: 'Last message' }).fill('6');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Annotation saved').waitFor();
  await page.reload();
  const panel = page.getByRole('tabpanel');
  await panel.getByText('asks for <b>nobody</b>').waitFor();
  await panel.getByRole('button', { name: '#5–6' }).waitFor();
  await expect.poll(() => article(page, 5).innerText()).toContain('✎');
  await page.getByText('good, 4 of 5').waitFor();
  const answer = await page.request.get(`${palestra.url}/v1/annotations?rollout=${ids.bad}`);
  const { annotations } = (await answer.json()) as {
    annotations: { verdict: string | null; score: number | null; from_index: number | null; to_index: number | null }[];
  };
  expect(annotations.map(({ verdict, score, from_index, to_index }) => [verdict, score, from_index, to_index])).toEqual([
    [null, null, 5, 6],
    ['good', null, null, null],
    [null, 4, null, null],
    ['exploit', null, null, null],
  ]);
  await panel
    .getByRole('button', { name: /^Delete the annotation of/ })
    .first()
    .click();
  await panel.getByText('asks for').waitFor({ state: 'detached' });
  expect(complaints).toEqual([]);
  await watched.close();
});

test('the outcome tab shows rewards by size, reward components, the failure, the golden answer and related rollouts', async () => {
  const watched = await openPage(browser, palestra, narrow);
  const { page, complaints } = watched;
  await open(watched, ids.graded, 'Find who did it.');
  const panel = page.getByRole('tabpanel');
  await expect
    .poll(() => panel.innerText())
    .toMatch(
      /search #\d+\s+\.0200\s+1 message with a reward of 0[\s\S]*format\s+\.100\s+correct\s+0\s+Failure\s+ValueError: nobody of that name\s+Golden answer\s+Everett <b>Moss<\/b>/,
    );
  await panel.getByRole('img', { name: /^Reward along the rollout/ }).waitFor();
  await expectSound(page);
  await panel.getByRole('link', { name: ids.good }).click();
  await expect.poll(() => new URL(page.url()).pathname).toBe(`/rollout/${ids.good}`);
  expect(complaints).toEqual([]);
  await watched.close();
});

test('the tabs show where figures come from', async () => {
  const watched = await openPage(browser, palestra, narrow);
  const { page, complaints } = watched;
  await open(watched, ids.bad, 'Find who did it.');
  const panel = page.getByRole('tabpanel');
  // .02 + 0 of the messages; the trainer said .5.
  await expect.poll(() => panel.innerText()).toMatch(/Total\s+\.020[\s\S]*Reported by the trainer\s+\.500[\s\S]*not the sum/);
  await page.getByRole('tab', { name: 'Tools' }).click();
  await expect.poll(() => panel.innerText()).toMatch(/interview\s+1\s+▲ 1/);
  await page.getByRole('tab', { name: 'Task' }).click();
  await panel.getByText('"case-1"').waitFor();
  await page.getByRole('tab', { name: 'Raw' }).click();
  await panel.getByText('Choose a message').waitFor();
  await article(page, 2).click();
  await panel.getByText('Message 3').waitFor();
  expect(new URL(page.url()).searchParams.get('tab')).toBe('raw');
  expect(complaints).toEqual([]);
  await watched.close();
});

test(
  'a live rollout keeps its reader’s place, counts what is new, and its tail follows until one scrolls up',
  { timeout: 150_000 },
  async () => {
    const lines = (from: number, count: number) =>
      Array.from({ length: count }, (_, i): UploadedMessage => ({ type: 'assistant_message', content: `live line ${from + i}` }));
    const id = await uploadRollout(palestra, { runName, task: 9, step: 7, messages: lines(0, 40) });
    const watched = await openPage(browser, palestra, narrow);
    const { page, complaints } = watched;
    await open(watched, id, 'live line 0');
    const scroller = page.getByRole('region', { name: 'Transcript, scrollable' });
    await scroller.evaluate((element) => (element.scrollTop = 300));
    const place = await settled(page, () => scroller.evaluate((element) => element.scrollTop));
    await uploadEvents(palestra, messageEvents(id, lines(40, 30), 40));
    await page.getByRole('button', { name: '30 new' }).waitFor();
    expect(await scroller.evaluate((element) => element.scrollTop)).toBe(place);
    await page.getByRole('button', { name: '30 new' }).click();
    await page.getByText('live line 69').waitFor();
    await uploadEvents(palestra, messageEvents(id, lines(70, 20), 70));
    await page.getByText('live line 89').waitFor();
    await scroller.hover();
    const bottom = await settled(page, () => scroller.evaluate((element) => element.scrollTop));
    await page.mouse.wheel(0, -400);
    await expect.poll(() => scroller.evaluate((element) => element.scrollTop)).toBeLessThan(bottom - 200);
    const held = await settled(page, () => scroller.evaluate((element) => element.scrollTop));
    await uploadEvents(palestra, messageEvents(id, lines(90, 10), 90));
    await page.getByRole('button', { name: '10 new' }).waitFor();
    expect(await scroller.evaluate((element) => element.scrollTop)).toBe(held);
    expect(complaints).toEqual([]);
    await watched.close();
  },
);

test(
  'a rollout that ends between two looks of its reader is shown to its end, and so is what comes after the end',
  { timeout: 150_000 },
  async () => {
    const said = (content: string, more: Partial<UploadedMessage> = {}): UploadedMessage => ({
      type: 'assistant_message',
      content,
      ...more,
    });
    const id = await uploadRollout(palestra, { runName, task: 10, step: 7, messages: [said('the opening')] });
    const watched = await openPage(browser, palestra, narrow);
    const { page, complaints } = watched;
    await open(watched, id, 'the opening');
    await uploadEvents(palestra, messageEvents(id, [said('the middle'), said('the last word', { reward: 1, isFinished: true })], 1));
    await page.getByText('the last word').first().waitFor();
    await page.getByText('the middle').first().waitFor();
    await uploadEvents(palestra, messageEvents(id, [said('a late afterthought')], 3));
    await page.getByText('a late afterthought').first().waitFor();
    expect(complaints).toEqual([]);
    await watched.close();
  },
);

test('the page is sound in every view', async () => {
  const watched = await openPage(browser, palestra, narrow);
  const { page, complaints } = watched;
  await open(watched, ids.bad, 'Find who did it.', '#m-5');
  await page.getByText('Best sample').waitFor();
  await expectSoundInEveryView(page, 'rollout-viewer');
  expect(complaints).toEqual([]);
  await watched.close();
});

test('the print view has every row', async () => {
  const watched = await openPage(browser, palestra, narrow);
  const { page } = watched;
  await open(watched, ids.bad, 'Find who did it.', '?print');
  await page.getByRole('article').getByText('The trail is cold.').waitFor();
  await expect.poll(() => page.locator('article').count()).toBe(7);
  await page.emulateMedia({ media: 'print' });
  expect(await page.getByRole('navigation', { name: 'Main' }).isVisible()).toBe(false);
  await watched.close();
});

test('an unknown id shows that the rollout is not found', async () => {
  const watched = await openPage(browser, palestra, narrow);
  await open(watched, randomUUID(), 'Rollout not found');
  expect(await watched.page.locator('article').count()).toBe(0);
  await watched.close();
});

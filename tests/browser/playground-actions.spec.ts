import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { serve } from '@palestra/environment-kit';
import type { SessionCallList } from '@palestra/protocol';
import { addRemote, type SharedPalestra, sharedPalestra } from '../support/palestra.ts';
import { axeFaults, expectSound, launch, loaded, openPage, shoot, soon, type View, visit } from './browser.ts';
import { apiOf, card, columns, fact, forms, legal, sidOf } from './playground.environments.ts';

/** The playground with action environments, forms of every kind, and its log. */
let palestra: SharedPalestra;
let browser: Browser;
const running: Awaited<ReturnType<typeof serve>>[] = [];
const light: View = { width: 1280, theme: 'light' };
const api = apiOf(() => palestra);
const ledger = async (sid: string) => (await api<SessionCallList>('GET', `/v1/sessions/${sid}/calls`)).calls;
const foreign = (complaints: string[]) => complaints.filter((one) => !one.startsWith(`request to blob:${palestra.url}/`));
const playOf = (name: string, search = '') => `${palestra.url}/environments/${name}/play${search}`;

/** The same environment through the OpenEnv or MCP server of this service. */
async function addSeen(name: string, kind: 'openenv' | 'mcp', of: string): Promise<void> {
  const source = { kind, url: `${palestra.url}/k/${palestra.apiKey}/${kind}/${of}` };
  await api('POST', '/v1/environments', { name, namespace: palestra.namespace, description: '', isPrivate: false, source });
}

beforeAll(async () => {
  running.push(await serve([columns]), await serve([forms]));
  [palestra, browser] = await Promise.all([sharedPalestra(), launch()]);
  await addRemote(palestra, 'columns', running[0]!.url);
  await addRemote(palestra, 'forms', running[1]!.url);
  await addSeen('oe-columns', 'openenv', `${palestra.namespace}/columns`);
  await addSeen('oe-whodunit', 'openenv', 'palestra/whodunit');
  await addSeen('mcp-whodunit', 'mcp', 'palestra/whodunit?split=train&index=0');
});
afterAll(async () => {
  for (const server of running) await server.close();
});

async function start(page: Page, name: string, search = '?task=0'): Promise<string> {
  await visit(page, playOf(name, search), 'Start');
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await page.getByRole('button', { name: /^(Call |Take this)/ }).waitFor();
  await page.waitForURL(/sid=/);
  return sidOf(page);
}
const own = (name: string) => `${palestra.namespace}/${name}`;

/** Allows the page to use the clipboard. Returns a function that reads it. */
async function clipboard(page: Page): Promise<() => Promise<string>> {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: palestra.url });
  return () => page.evaluate(() => navigator.clipboard.readText());
}

describe('an action environment', () => {
  test('is played by legal actions, the form and keys, and shows observations', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    const sid = await start(page, own('columns'));
    const title = await page.title();
    // One action: nothing to choose a tool from, and the observation is a table, not its JSON.
    expect(await page.getByRole('radio').count()).toBe(0);
    const prompt = page.getByRole('region', { name: 'Prompt' });
    await prompt.getByText('first observation').waitFor();
    expect(await prompt.getByRole('group', { name: '3 rows of 4' }).innerText()).toContain('0 0 0 0\n0 0 0 0\n0 0 0 0');
    await prompt.getByText('<img src=x onerror="document.title=1"> Drop a stone.').waitFor();
    await expect.poll(() => prompt.locator('img').evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(2);
    await expect.poll(() => legal(page).getByRole('button').allInnerTexts()).toEqual(['0', '1', '2', '3']);

    await legal(page).getByRole('button', { name: '2' }).click();
    await card(page, 1).getByText('Stone 1.').waitFor();
    expect(await card(page, 1).getByRole('group', { name: '3 rows of 4' }).innerText()).toContain('0 0 1 0');
    await page.getByRole('button', { name: 'Repeat last' }).click();
    await card(page, 2).getByText('Stone 2.').waitFor();
    await expect.poll(() => page.getByRole('button', { name: 'Repeat last' }).isEnabled()).toBe(true);
    await page.getByRole('textbox', { name: 'column' }).focus();
    await page.keyboard.press('Control+Shift+Enter');
    await card(page, 3).getByText('Stone 3.').waitFor();
    // The column is full now, and no longer among the legal ones.
    await expect.poll(() => legal(page).getByRole('button').allInnerTexts()).toEqual(['0', '1', '3']);
    await card(page, 1).getByRole('button', { name: 'edit and call again' }).click();
    const column = page.getByRole('textbox', { name: 'column' });
    await expect.poll(() => column.inputValue()).toBe('2');
    await column.fill('0');
    await page.keyboard.press('Control+Enter');
    await card(page, 4).getByText('finished').waitFor();

    const calls = await ledger(sid);
    expect(calls.map(({ tool, input, reward, finished }) => [tool, input, reward, finished])).toEqual([
      ['step', '{"column":2}', null, false],
      ['step', '{"column":2}', null, false],
      ['step', '{"column":2}', null, false],
      ['step', '{"column":0}', 1, true],
    ]);
    await expect.poll(() => fact(page, 'steps').innerText()).toContain('4');
    await expect.poll(() => fact(page, 'finished').innerText()).toBe('Yes');
    await expect.poll(() => fact(page, 'reward so far').innerText()).toContain('1.00 over 1 scored');
    expect(await fact(page, 'session').innerText()).toBe(sid);
    expect(await fact(page, 'task').innerText()).toBe('train 0');
    expect(await page.title()).toBe(title);
    await expectSound(page);
    // The log is that of the session: a reload brings it back.
    await page.reload();
    await card(page, 4).getByText('finished').waitFor();
    expect(foreign(complaints)).toEqual([]);
    await close();
  });

  test('an unscored episode has no reward, which is not 0', async () => {
    const { page, close } = await openPage(browser, palestra, light);
    await start(page, own('columns'));
    await legal(page).getByRole('button', { name: '1' }).click();
    await card(page, 1).getByText('Stone 1.').waitFor();
    expect(await fact(page, 'reward so far').innerText()).toBe('– No scored call');
    expect(await card(page, 1).innerText()).not.toMatch(/(^|\s)[+]?\.?0+(\.0+)?\s*reward/);
    await close();
  });
});

describe('a session of an OpenEnv server', () => {
  test('is played the same way; its state is read only while it is open, after every action', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    const sid = await start(page, own('oe-columns'), '?split=test&task=1');
    await legal(page).getByRole('button', { name: '4' }).click();
    await card(page, 1).getByText('Stone 1.').waitFor();
    const observer = page.getByRole('region', { name: 'Observer' });
    await observer.getByText('The state can contain the answer').waitFor();
    expect(asked).not.toContain(`/v1/sessions/${sid}/state`);
    await observer.getByRole('button', { name: 'Show environment state' }).click();
    const state = observer.getByRole('group', { name: 'State of the environment' });
    await state.getByText('step_count: 1').waitFor();
    expect(await state.innerText()).toContain('split: "test"');
    await legal(page).getByRole('button', { name: '4' }).click();
    await state.getByText('step_count: 2').waitFor();
    expect(foreign(complaints)).toEqual([]);
    await close();
  });

  test('other environments have no state; the route returns data of the ledger', async () => {
    const { page, close } = await openPage(browser, palestra, light);
    const sid = await start(page, own('columns'));
    await legal(page).getByRole('button', { name: '3' }).click();
    await card(page, 1).getByText('Stone 1.').waitFor();
    expect(await page.getByText('The state can contain the answer').count()).toBe(0);
    await expect
      .poll(() => api('GET', `/v1/sessions/${sid}/state`))
      .toEqual({
        source: 'ledger',
        state: { episode_id: sid, step_count: 1, split: 'train', index: 0, total_reward: null, state: 'ready' },
      });
    await close();
  });
});

describe('an environment with tools on each backend', () => {
  test.each(['palestra/whodunit', 'oe-whodunit', 'mcp-whodunit'])('%s', async (name) => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    const sid = await start(page, name.includes('/') ? name : own(name));
    await page.getByRole('region', { name: 'Prompt' }).getByText('Suspects:').waitFor();
    const prompt = await page.getByRole('region', { name: 'Prompt' }).innerText();
    const [, suspect] = /Suspects: (\w+)/.exec(prompt)!;
    await page.getByRole('radio', { name: /^interview/ }).check();
    await page.getByRole('textbox', { name: 'suspect' }).fill(suspect!);
    await page.keyboard.press('Control+Enter');
    await card(page, 1, 'interview').getByRole('button', { name: 'Copy call 1 as JSON' }).waitFor();
    await soon(async () => {
      const [call] = await ledger(sid);
      expect(call).toMatchObject({ tool: 'interview', input: JSON.stringify({ suspect }), ok: true, reward: 0 });
      // The same three statements, whichever way they came.
      expect(await card(page, 1, 'interview').innerText()).toContain(call!.text!.split('\n', 1)[0]!);
    });
    await expect.poll(() => fact(page, 'tools').innerText()).toBe('accuse, check_alibi, interview, search');
    await expectSound(page);
    expect(foreign(complaints)).toEqual([]);
    await close();
  });

  test('palestra/ctf', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    const sid = await start(page, 'palestra/ctf');
    await page.getByRole('radio', { name: /^ls/ }).check();
    await page.getByRole('button', { name: 'Call ls' }).click();
    await card(page, 1, 'ls').getByRole('button', { name: 'Copy call 1 as JSON' }).waitFor();
    await expect.poll(() => ledger(sid)).toMatchObject([{ tool: 'ls', input: '{}', ok: true }]);
    await page.getByRole('radio', { name: /^submit/ }).check();
    await page.getByRole('textbox', { name: 'flag' }).fill('not the flag');
    await page.keyboard.press('Control+Enter');
    await card(page, 2, 'submit').getByRole('button', { name: 'Copy call 2 as JSON' }).waitFor();
    await soon(async () => {
      const [, submitted] = await ledger(sid);
      expect(submitted).toMatchObject({ tool: 'submit', ok: true });
      expect(await fact(page, 'finished').innerText()).toBe(submitted!.finished ? 'Yes' : 'No');
    });
    expect(foreign(complaints)).toEqual([]);
    await close();
  });
});

describe('forms', () => {
  test('show problems beside each field before they send; rows can move; omitted is not empty', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    const sid = await start(page, own('forms'));
    const form = page.getByRole('form', { name: 'Call every' });
    const box = (name: string) => form.getByRole('textbox', { name, exact: true });
    // Eight of them, and both of the place that must be given.
    await expect.poll(() => form.getByText('required').count()).toBe(10);
    expect(await box('count').inputValue()).toBe('2');
    expect(await form.getByRole('checkbox', { name: 'maybe: null' }).isChecked()).toBe(true);
    await box('count').fill('6');
    await box('tensor').fill('1 2\n3 10');
    await page.keyboard.press('Control+Enter');
    for (const message of ['Must be at most 5.', 'Number 4 (10): Must be at most 9.', 'Choose one.'])
      await form.getByText(message).waitFor();
    await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('code');
    await box('tensor').fill('1 2 3');
    await form.getByText('Enter at most 2 numbers, not 3.').waitFor();
    expect(await ledger(sid)).toEqual([]);

    await box('code').fill('print(1)\nprint(2)');
    await box('count').fill('3');
    await form.getByRole('checkbox', { name: 'really' }).check();
    await form.getByRole('combobox', { name: 'colour' }).selectOption('green');
    await box('tensor').fill('1 2.50\n-3e2 4');
    await form.getByText('size 2 × 2').waitFor();
    await form.getByRole('button', { name: 'Add item 2' }).click();
    await form.getByRole('textbox', { name: 'names 1' }).fill('first');
    await form.getByRole('textbox', { name: 'names 2' }).fill('second');
    await form.getByRole('button', { name: 'Move names 2 up' }).click();
    await expect.poll(() => form.getByRole('textbox', { name: 'names 1' }).inputValue()).toBe('second');
    await box('x').fill('10');
    await box('y').fill('0');
    // The choice is there while the field has the focus.
    expect(await form.getByText('empty text').filter({ visible: true }).count()).toBe(0);
    await box('comment').focus();
    await form.getByRole('checkbox', { name: 'comment: empty text' }).check();
    await page.keyboard.press('Control+Enter');
    await form.getByText('Must be below 10.').waitFor();
    await box('x').fill('9.5');
    await page.keyboard.press('Control+Enter');
    await card(page, 1, 'every').waitFor();
    const [call] = await ledger(sid);
    expect(call!.input).toBe(
      '{"code":"print(1)\\nprint(2)","count":3,"really":true,"colour":"green","tensor":[[1,2.50],[-3e2,4]],"names":["second","first"],"at":{"x":9.5,"y":0},"maybe":null,"comment":""}',
    );
    expect(foreign(complaints)).toEqual([]);
    await close();
  });

  test('and JSON edit the same value; input that violates the schema gets a warning and is sent', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    const sid = await start(page, own('forms'));
    const form = page.getByRole('form', { name: 'Call every' });
    const json = form.getByRole('textbox', { name: 'Input as JSON' });
    const value =
      '{"code":"x","count":1,"really":false,"colour":"red","tensor":[[1.0,2]],"names":["a"],"at":{"x":1,"y":2},"maybe":5,"either":{"x":0,"y":0}}';
    await form.getByRole('button', { name: 'JSON', exact: true }).click();
    await json.fill('{"code":');
    await page.keyboard.press('Control+Enter');
    await form.getByText('Not valid JSON').waitFor();
    await json.fill(value);
    await form.getByRole('button', { name: 'Form', exact: true }).click();
    await expect.poll(() => form.getByRole('textbox', { name: 'tensor' }).inputValue()).toBe('[[1.0,2]]');
    await expect.poll(() => form.getByRole('radio', { name: 'by place' }).isChecked()).toBe(true);
    await page.keyboard.press('Control+Enter');
    // Its card appears when it starts, and the form takes no other call until it has ended.
    await card(page, 1, 'every').getByRole('button', { name: 'Copy call 1 as JSON' }).waitFor();
    await form.getByRole('button', { name: 'Call every' }).waitFor();
    expect(JSON.parse((await ledger(sid))[0]!.input)).toEqual(JSON.parse(value));

    await form.getByRole('button', { name: 'JSON', exact: true }).click();
    await json.fill('{"count":9,"strange":1}');
    await form.getByText('The input does not match the tool’s schema').waitFor();
    await form.getByText('count: Must be at most 5.').waitFor();
    await json.press('Control+Enter');
    await card(page, 2, 'every').waitFor();
    expect((await ledger(sid))[1]!.input).toBe('{"count":9,"strange":1}');
    // A form could not say that: to call it again begins as JSON, too.
    await card(page, 2, 'every').getByRole('button', { name: 'edit and call again' }).click();
    await expect.poll(() => json.inputValue()).toBe('{"count":9,"strange":1}');
    expect(foreign(complaints)).toEqual([]);
    await close();
  });
});

describe('the log', () => {
  test('can be filtered, and copied as lines, as a working command and as a program', async () => {
    const { page, complaints, close } = await openPage(browser, palestra, light);
    const sid = await start(page, own('columns'));
    const copied = await clipboard(page);
    for (const column of ['0', '1']) {
      await legal(page).getByRole('button', { name: column }).click();
      await card(page, Number(column) + 1)
        .getByText(`Stone ${Number(column) + 1}.`)
        .waitFor();
    }
    await page.getByRole('searchbox', { name: /Filter/ }).fill('"column":1');
    await page.getByText('1 of 2 calls', { exact: true }).waitFor();
    expect(await page.getByRole('list', { name: 'Calls in order' }).getByRole('listitem').count()).toBe(1);
    await page.getByRole('button', { name: 'copy as JSONL' }).click();
    await page.getByRole('button', { name: 'copied' }).waitFor();
    const lines = (await copied()).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line) as object)).toMatchObject([
      { n: 2, tool: 'step', arguments: { column: 1 }, reward: null, finished: false },
    ]);
    await page.getByRole('searchbox', { name: /Filter/ }).fill('');
    await page.getByRole('combobox', { name: 'Outcome' }).selectOption('scored');
    await page.getByText('0 of 2 calls', { exact: true }).waitFor();
    await page.getByRole('combobox', { name: 'Outcome' }).selectOption('all');

    await page.getByRole('button', { name: 'Copy call 2 as Python' }).click();
    await expect.poll(copied).toContain('session.call_tool("step", {"column":1})');
    await page.getByRole('button', { name: 'Copy call 2 as curl' }).click();
    await expect.poll(copied).toContain('curl');
    const command = await copied();
    expect(command).not.toContain(palestra.apiKey);
    const env = { ...process.env, OPENREWARD_API_KEY: palestra.apiKey };
    const { stdout } = await promisify(execFile)('sh', ['-c', `${command} --silent --max-time 40`], { env });
    expect(stdout).toContain('Stone 3.');
    await card(page, 3).getByText('Stone 3.').waitFor();
    expect((await ledger(sid)).map(({ input }) => input)).toEqual(['{"column":0}', '{"column":1}', '{"column":1}']);
    expect(foreign(complaints)).toEqual([]);
    await close();
  });
});

test('pages are sound at 1280 and 760 pixels, light and dark', async () => {
  const { page, complaints, close } = await openPage(browser, palestra, light);
  const look = async (name: string) => {
    for (const theme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: theme });
      await page.locator(`html[data-theme=${theme}]`).waitFor();
      for (const width of [1280, 760]) {
        await page.setViewportSize({ width, height: 800 });
        await loaded(page);
        await shoot(page, `${name}-${width}-${theme}`);
        await expectSound(page);
        expect(await axeFaults(page, theme === 'light' ? undefined : 'colours'), `${name} at ${width} in ${theme}`).toEqual([]);
      }
    }
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.emulateMedia({ colorScheme: 'light' });
  };
  await visit(page, playOf(own('columns')), 'Quick start');
  await page.getByRole('button', { name: 'OpenEnv', exact: true }).click();
  await look('playground-guide');
  await start(page, own('oe-columns'));
  await legal(page).getByRole('button', { name: '1' }).click();
  await card(page, 1).getByText('Stone 1.').waitFor();
  await page.getByRole('button', { name: 'Show environment state' }).click();
  await page.getByText('step_count: 1').waitFor();
  await look('playground-action');
  await start(page, own('forms'));
  await page.keyboard.press('Control+Enter');
  await page.getByText('Choose one.').waitFor();
  await look('playground-form');
  await page.getByRole('button', { name: 'Quick start' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'MCP', exact: true }).click();
  await look('playground-guide-dialog');
  expect(foreign(complaints)).toEqual([]);
  await close();
}, 300_000);

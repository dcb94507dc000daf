import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ScriptedServer, startScripted } from '../../libs/openenv/src/client/scripted-server.fixture.ts';
import { createOrganisation } from '../support/organisation.ts';
import { addOpenEnv, type Palestra, type SharedPalestra, sharedPalestra, startPalestra, testApiKey } from '../support/palestra.ts';
import { launch, openPage } from './browser.ts';

/** Findings C1 and M8 of the audit in a real browser: a hostile environment server and a hostile web page. */

/** Creates a key with all scopes in the name of whoever opens it. */
const SCRIPT = `<!doctype html><title>attack</title><script>
fetch('/v1/keys', { method: 'POST', headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ name: 'stolen', scopes: ['sessions', 'environments', 'rollouts', 'keys'] }) });
document.title = 'script ran';
</script>`;

const RELAYED = ['/state', '/list_environments'];
/** Of the environment server. In place of the others the service has pages and answers of its own. */
const PATHS = [...RELAYED, '/metadata', '/web', '/docs'];

let palestra: SharedPalestra;
let trap: ScriptedServer;
let browser: Browser;
let anonymous: Palestra;
let hostile: Server;
let hostileUrl = '';
/** After its registration. */
let isHostile = false;
/** What the hostile page does. */
let attack = '';

beforeAll(async () => {
  hostile = createServer((_, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html><script>${attack}</script>`),
  );
  await new Promise<void>((resolve) => hostile.listen(0, '127.0.0.1', resolve));
  hostileUrl = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`;
  trap = await startScripted({
    generation: 'C',
    onGet(path, response) {
      if (!isHostile || !PATHS.includes(path)) return false;
      response.writeHead(200, { 'content-type': 'text/html' }).end(SCRIPT);
      return true;
    },
  });
  [palestra, browser, anonymous] = await Promise.all([
    sharedPalestra(),
    launch(),
    startPalestra({ endsWithParent: process.platform === 'linux', env: { PALESTRA_ANONYMOUS: '1', PALESTRA_BUNDLED_ENVIRONMENTS: '1' } }),
  ]);
});
afterAll(async () => {
  hostile?.close();
  await trap?.stop();
  await anonymous?.stop();
});

const keysOf = async (apiKey: string): Promise<string[]> => {
  const answer = await fetch(`${palestra.url}/v1/keys`, { headers: { 'x-api-key': apiKey } });
  return ((await answer.json()) as { keys: { name: string }[] }).keys.map(({ name }) => name);
};

test('C1: a link to a hostile environment runs no script in the name of the owner who opens it', async () => {
  const attacker = await createOrganisation(palestra.url, testApiKey);
  const name = await addOpenEnv({ ...palestra, ...attacker, namespace: attacker.name }, 'trap', trap.url);
  isHostile = true;
  const { page, close } = await openPage(browser, palestra, { width: 1280, theme: 'light' });
  for (const path of PATHS) {
    const answer = await page.goto(`${palestra.url}/openenv/${name}${path}`);
    if (RELAYED.includes(path)) expect(answer!.headers()['content-type'] ?? '', path).not.toMatch(/html|svg|xml/);
    expect(await page.content(), path).not.toContain('<title>attack');
    expect(await page.title(), path).not.toBe('script ran');
  }
  // From a page of the service itself.
  await page.goto(`${palestra.url}/keys`);
  const loaded = await page.evaluate(async (url) => {
    const answer = await fetch(url).catch(() => null);
    return answer === null ? '' : `${answer.headers.get('content-type')} ${answer.headers.get('content-security-policy')}`;
  }, `${palestra.url}/openenv/${name}/state`);
  expect(loaded).not.toContain('text/html');
  await close();
  expect(await keysOf(palestra.apiKey)).not.toContain('stolen');
});

test('M8: a page of another site calls nothing on a service that needs no key', async () => {
  attack = `
    const send = (path, options) => fetch('${anonymous.url}' + path, options).then((answer) => answer.text()).catch((error) => String(error));
    Promise.all([
      send('/create_session', { method: 'POST', mode: 'no-cors', headers: { 'content-type': 'text/plain' }, body: '{}' }),
      send('/v1/keys', { method: 'POST', mode: 'no-cors', headers: { 'content-type': 'text/plain' }, body: '{"name":"stolen"}' }),
      send('/v1/runs', {}),
      send('/v1/sessions', { method: 'POST', mode: 'no-cors', headers: { 'content-type': 'text/plain' },
        body: '{"environment":"palestra/math","split":"train","index":0}' }),
    ]).then((answers) => { document.title = 'done ' + answers.join('|'); });`;
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${hostileUrl}/attack`);
  await page.waitForFunction(() => document.title.startsWith('done'));
  // The page reads no answer.
  expect(await page.title()).not.toMatch(/sid|key|runs/);
  await context.close();
  const ask = async (path: string) =>
    (await (await fetch(anonymous.url + path, { headers: { 'x-api-key': anonymous.apiKey } })).json()) as {
      sessions: object[];
      keys: { name: string }[];
    };
  expect((await ask('/v1/sessions?state=live')).sessions).toEqual([]);
  expect((await ask('/v1/keys')).keys.map(({ name }) => name)).not.toContain('stolen');
});

import { randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventsOf, seeded, upload } from '../integration/runs/run-reads.world.ts';
import { pixelsOf } from '../support/png.ts';
import { startServer, type TestServer } from '../support/server.ts';

/** What chats read of a link: its title, figure and chart, whatever names tenants chose, and nothing once the link has ended. */

let server: TestServer;
/** Not where the tests reach the service: a proxy is in front of it. */
const PUBLIC = 'https://palestra.example';
const shown = seeded('previewed', { steps: 3, tasks: 2, n: 2 });
const other = seeded('previewed other', { steps: 3, tasks: 2, n: 2 });
const ids: Record<string, string> = {};
beforeAll(async () => {
  server = await startServer({ publicUrl: PUBLIC, unauthenticatedLimits: { failures: 100_000, requests: 100_000 } });
  await upload(server, 'previewed', shown);
  await upload(server, 'previewed other', other);
  for (const name of ['previewed', 'previewed other']) ids[name] = (await get(`/v1/runs/${encodeURIComponent(name)}`)).id;
});
afterAll(() => server?.close());

const get = async (path: string) => (await server.request('GET', path)).body;
async function create(body: object): Promise<{ id: string; path: string }> {
  const { status, body: created } = await server.request('POST', '/v1/shares', { body });
  expect(status, JSON.stringify(created)).toBe(200);
  expect(created.url).toMatch(/^https:\/\/palestra\.example\/share\/[\w-]{43}$/);
  return { id: created.id, path: new URL(created.url).pathname };
}
const open = (path: string) => fetch(server.url + path, { redirect: 'manual' });

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
const decoded = (text: string) => text.replaceAll(/&(#39|\w+);/g, (_, name: string) => entities[name]!);
/** Names and values of the `meta` elements. The pattern finds only elements in the form that the page writes. */
const metaOf = (html: string): Record<string, string> =>
  Object.fromEntries(
    [...html.matchAll(/^<meta (?:property|name|http-equiv)="([^"<>]+)" content="([^"<>]*)">$/gm)].map(([, name, value]) => [
      name!,
      decoded(value!),
    ]),
  );
async function preview(body: object) {
  const { path, id } = await create(body);
  const answer = await open(path);
  expect(answer.status).toBe(200);
  const html = await answer.text();
  return { path, id, html, answer, meta: metaOf(html) };
}

describe('title and description say', () => {
  const reward = (value: number | null) => (value === null ? 'not scored' : `reward ${value === 1 ? '1.00' : '0'}`);
  const meanOf = (rollouts: typeof shown) => {
    const scored = rollouts.flatMap((one) => one.reward ?? []);
    return { text: (scored.reduce((sum, value) => sum + value, 0) / scored.length).toFixed(3).replace(/^0/, ''), n: scored.length };
  };

  test('of a run: its mean reward, over how many rollouts, and its environment', async () => {
    const { meta, html } = await preview({ run: 'previewed' });
    const { text } = meanOf(shown);
    expect(meta['og:title']).toBe(`previewed: mean reward ${text}`);
    expect(meta['og:description']).toMatch(new RegExp(`^mean reward \\${text} over 12 rollouts, 3 steps · acme/math$`));
    expect(meta['description']).toBe(meta['og:description']);
    expect(html).toContain(`<title>previewed: mean reward ${text} · Palestra</title>`);
    expect(meta['refresh']).toBe(`0; url=/${server.orgName}/runs/previewed`);
  });

  test('of a list: how many match, of which query', async () => {
    expect((await preview({ run: 'previewed', q: 'step:1' })).meta).toMatchObject({
      'og:title': 'previewed: 4 rollouts',
      'og:description': '4 rollouts match step:1',
      refresh: `0; url=/${server.orgName}/runs/previewed/rollouts?q=step%3A1`,
    });
    expect((await preview({ run: 'previewed', q: '' })).meta).toMatchObject({ 'og:description': '12 rollouts of the run' });
    expect((await preview({ run: 'previewed', q: `id:${shown[0]!.id}` })).meta).toMatchObject({ 'og:title': 'previewed: 1 rollout' });
    expect((await preview({ run: 'previewed', q: 'step:99' })).meta).toMatchObject({ 'og:title': 'previewed: 0 rollouts' });
  });

  test('of a comparison of runs: both means, and the difference with its interval', async () => {
    const { meta } = await preview({ runs: ['previewed', 'previewed other'] });
    expect(meta['og:title']).toBe(
      `previewed: mean reward ${meanOf(shown).text} against previewed other: mean reward ${meanOf(other).text}`,
    );
    const compared = await get(`/v1/compare?runs=${ids['previewed']},${ids['previewed other']}&steps=common&den=effective`);
    const { difference } = compared.pairs[0].metrics.find(({ metric }: { metric: string }) => metric === 'reward_mean');
    expect(meta['og:description']).toMatch(/^Difference to previewed: previewed other [+−-]?[\d.]+( \(95 %: .+ to .+\))?$/);
    expect(Number(/other ([+−-]?[\d.]+)/.exec(meta['og:description']!)![1]!.replace('−', '-'))).toBeCloseTo(difference, 2);
  });

  test('of rollouts: task, reward and how long each was', async () => {
    const [a, b, c, d] = shown as [(typeof shown)[0], (typeof shown)[0], (typeof shown)[0], (typeof shown)[0]];
    const { meta } = await preview({ rollout: a.id });
    expect(meta['og:title']).toBe(`train ${a.task}: ${reward(a.reward)}`);
    expect(meta['og:description']).toBe(`acme/math · previewed · step 0 · ${a.reward === null ? 'max_turns' : 'finished'} · 2 turns`);
    for (const [word, rollouts] of [
      ['Two', [a, b]],
      ['Three', [a, b, c]],
      ['Four', [d, c, b, a]],
    ] as const) {
      const of = (await preview({ rollouts: rollouts.map(({ id }) => id) })).meta;
      expect(of['og:title']).toBe(`${word} rollouts: ${rollouts.map((one) => reward(one.reward)).join(' against ')}`);
      expect(of['og:description']).toBe(
        rollouts.map((one, at) => `${'ABCD'[at]}: train ${one.task}, ${reward(one.reward)}, 2 turns`).join(' · '),
      );
    }
  });
});

const hostile: [what: string, name: string, title: string][] = [
  ['markup', '"><script>alert(1)</script>', '"><script>alert(1)</script>'],
  ['a closing title', "</title></head><body onload='x'>", "</title></head><body onload='x'>"],
  ['entities', '&quot;&#x22;&lt;b&gt;', '&quot;&#x22;&lt;b&gt;'],
  ['an end of the refresh', "x' ; url=//evil.example", "x' ; url=//evil.example"],
  ['line breaks', 'first\nsecond\r\n<meta name="a" content="b">\tend', 'first second <meta name="a" content="b"> end'],
  ['control characters', 'a\u0001b\u0085c\u2028d', 'a b c d'],
  ['overridden direction', 'gpj\u202Eexe.\u2066\u200Fend', 'gpjexe.end'],
  ['right to left', 'ניסוי שלישי', 'ניסוי שלישי'],
  ['emoji', '👩‍👩‍👧‍👦 run 🏴‍☠️', '👩‍👩‍👧‍👦 run 🏴‍☠️'],
  ['a very long name', '😀'.repeat(500), `${'😀'.repeat(299)}…`],
];

describe('names that tenants chose', () => {
  test.each(hostile)('%s', async (what, name, title) => {
    const uploaded = seeded(`hostile ${what}`, { steps: 1, tasks: 1, n: 2 }).map((one) => ({ ...one, reward: 1 }));
    await upload(server, name, uploaded);
    const { runs } = await get('/v1/runs?limit=500');
    const run = runs.find((one: { name: string }) => one.name === name);
    expect(run, JSON.stringify(runs.map((one: { name: string }) => one.name))).toBeDefined();
    const expected = (rest: string) => (what === 'a very long name' ? title : `${title}${rest}`);
    const bodies: [string, object, string][] = [
      ['run', { run: run.id }, ': mean reward 1.00'],
      ['list', { run: run.id, q: '' }, ': 2 rollouts'],
      ['runs', { runs: [run.id, ids['previewed']] }, ': mean reward 1.00 against '],
    ];
    for (const [kind, body, rest] of bodies) {
      const { html, meta } = await preview(body);
      expect([kind, meta['og:title']!.startsWith(expected(rest)), meta['og:title']]).toEqual([kind, true, meta['og:title']]);
      // The elements of the page are the same for every name, and none has an attribute more.
      expect(html.match(/<\/?\w+/g)).toEqual(ELEMENTS);
      expect(html.match(/<meta /g)).toHaveLength(Object.keys(meta).length + 1);
      // oxlint-disable-next-line no-control-regex
      expect(html).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffd]/);
      expect(meta['refresh']).toMatch(/^0; url=\/[^/]/);
      expect(meta['og:title']!.length).toBeLessThanOrEqual(601);
    }
  });

  test('in the fields of a rollout', async () => {
    const [one] = seeded('hostile fields', { steps: 1, tasks: 1, n: 1 });
    const [start, ...messages] = eventsOf('hostile fields', { ...one!, reward: 1 }) as Record<string, unknown>[];
    const markup = '"><img src=x onerror=alert(1)>';
    const sent = { ...start, environment: `acme/${markup}`, split: markup, rolloutName: markup };
    const { status } = await server.request('POST', '/v1/rollouts', { body: { events: [sent, ...messages] } });
    expect(status).toBe(200);
    const { html, meta } = await preview({ rollout: one!.id });
    expect(meta['og:title']).toContain(markup);
    expect(html).not.toContain('<img');
    expect(html.match(/<\/?\w+/g)).toEqual(ELEMENTS);
  });

  test('in a query', async () => {
    const q = `task:"\\"><script>alert(1)</script>"`;
    const { html, meta } = await preview({ run: 'previewed', q });
    expect(meta['og:description']).toBe(`0 rollouts match ${q}`);
    expect(html.match(/<\/?\w+/g)).toEqual(ELEMENTS);
  });
});
/** Of every page of a link. */
const ELEMENTS =
  `<html <head <meta <title </title <meta <meta ${'<meta '.repeat(13)}<style </style </head <body <header <svg <path </svg </header <main <p <a </a </p </main </body </html`.split(
    ' ',
  );

/** The answer to a request whose Host, and what a proxy says of it, are of an attacker. */
const openAs = (path: string, headers: Record<string, string>): Promise<{ status: number; body: string }> =>
  new Promise((resolve, reject) => {
    const sent = httpRequest(server.url + path, { headers }, (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (part: string) => (body += part));
      answer.on('end', () => resolve({ status: answer.statusCode!, body }));
    });
    sent.on('error', reject).end();
  });

test('addresses are those of the configured origin, whatever the request says of its host', async () => {
  const { path } = await create({ run: 'previewed' });
  const plain = await (await open(path)).text();
  expect(metaOf(plain)).toMatchObject({
    'og:url': PUBLIC + path,
    'og:image': `${PUBLIC}${path}/image.png`,
    'og:image:width': '1200',
    'og:image:height': '630',
    'og:image:type': 'image/png',
    'twitter:card': 'summary_large_image',
  });
  const forged: Record<string, string>[] = [
    { host: 'evil.example' },
    { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'http', 'x-forwarded-port': '81' },
    { forwarded: 'host=evil.example;proto=http' },
    { 'x-original-url': '/evil', origin: 'https://evil.example', referer: 'https://evil.example/' },
  ];
  for (const headers of forged) {
    const { status, body } = await openAs(path, headers);
    expect([headers, status, body.includes('evil')]).toEqual([headers, 200, false]);
    expect(body).toBe(plain);
  }
});

/** Rows of the image. */
const [FIGURES, CHART]: [[number, number], [number, number]] = [
  [0, 190],
  [190, 630],
];
const LINES = ['2f6f4f', 'b4552d', '3d63a8', '8a5aa8'];

describe('the image', () => {
  async function image(body: object) {
    const { path } = await create(body);
    const answer = await open(`${path}/image.png`);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/png']);
    const png = Buffer.from(await answer.arrayBuffer());
    expect(png.length).toBeLessThan(150_000);
    return { ...pixelsOf(png), answer };
  }

  test('is a PNG of 1200 by 630 pixels with one line and one figure per run or rollout', async () => {
    // Lines of the same rewards would cover each other.
    const drawn = seeded('drawn', { steps: 1, tasks: 1, n: 4 }).map((one, at) => ({ ...one, reward: 0.25 * (at + 1) }));
    await upload(server, 'drawn', drawn);
    const [a, b, c, d] = drawn.map(({ id }) => id);
    const kinds: [object, number][] = [
      [{ run: 'previewed' }, 1],
      [{ run: 'previewed', q: 'step:1' }, 1],
      [{ runs: ['previewed', 'previewed other'] }, 2],
      [{ rollout: a }, 1],
      [{ rollouts: [a, b] }, 2],
      [{ rollouts: [a, b, c, d] }, 4],
    ];
    for (const [body, lines] of kinds) {
      const { width, height, coloursIn } = await image(body);
      expect([width, height]).toEqual([1200, 630]);
      for (const part of [coloursIn(...FIGURES), coloursIn(...CHART)])
        expect([body, LINES.filter((colour) => (part.get(colour) ?? 0) > 20).length]).toEqual([body, lines]);
    }
  });

  test('is drawn for values beyond drawing, for thousands of points and for none', async () => {
    const id = randomUUID();
    const start = { eventType: 'rollout', eventId: id, timestamp: 1, runName: 'odd', environment: 'acme/math', split: 'train' };
    const rewards = [1e308, -1e308, 0.1, ...Array.from({ length: 3_000 }, (_, i) => Math.sin(i))];
    const messages = rewards.map((reward, index) => ({
      eventType: 'message',
      eventId: randomUUID(),
      rolloutEventId: id,
      timestamp: 2 + index,
      index,
      type: 'tool_result',
      content: '',
      isFinished: index === rewards.length - 1,
      reward,
      metadata: {},
    }));
    for (let at = 0; at < messages.length; at += 1_000) {
      const events = [...(at === 0 ? [start] : []), ...messages.slice(at, at + 1_000)];
      expect((await server.request('POST', '/v1/rollouts', { body: { events } })).status).toBe(200);
    }
    expect(await image({ rollout: id })).toMatchObject({ width: 1200, height: 630 });
    const none = await image({ run: 'previewed', q: 'step:99' });
    expect([FIGURES, CHART].map((rows) => none.coloursIn(...rows).has('2f6f4f'))).toEqual([true, false]);
  });
});

test('is stored by nobody, runs nothing, and an image signs nobody in', async () => {
  const { path } = await create({ run: 'previewed' });
  const [page, image] = [await open(path), await open(`${path}/image.png`)];
  for (const { headers } of [page, image])
    expect(Object.fromEntries(headers)).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-robots-tag': 'noindex',
      'content-security-policy': expect.stringContaining("default-src 'none'"),
    });
  expect(image.headers.get('set-cookie')).toBeNull();
  const cookie = page.headers.get('set-cookie')!;
  expect(cookie).toMatch(/^palestra_share=[\w-]{43};/);
  for (const attribute of ['HttpOnly', 'Secure', 'SameSite=Lax', 'Path=/']) expect(cookie.toLowerCase()).toContain(attribute.toLowerCase());
});

describe('a link that ended', () => {
  /** What everyone sees for a token that never existed. */
  const ofNothing = async () => (await open(`/share/${'a'.repeat(43)}`)).text();
  async function expectGone(path: string) {
    const gone = await ofNothing();
    for (const one of [path, `${path}/image.png`]) {
      const answer = await open(one);
      expect([one, answer.status, answer.headers.get('content-type'), answer.headers.get('set-cookie')]).toEqual([
        one,
        404,
        'text/html; charset=utf-8',
        null,
      ]);
      expect(await answer.text()).toBe(gone);
    }
  }
  /** Opens page and image, so that they are in the cache. */
  async function opened(body: object) {
    const { path, id } = await create(body);
    for (const one of [path, `${path}/image.png`]) expect((await open(one)).status).toBe(200);
    return { path, id };
  }
  const kinds = (): object[] => [
    { run: 'previewed' },
    { run: 'previewed', q: 'step:1', with_rollouts: true },
    { runs: ['previewed', 'previewed other'] },
    { rollout: shown[0]!.id },
    { rollouts: [shown[0]!.id, shown[1]!.id] },
  ];

  test('tells nothing, also of what was just previewed: revoked', async () => {
    for (const body of kinds()) {
      const { path, id } = await opened(body);
      expect((await server.request('DELETE', `/v1/shares/${id}`)).status).toBe(200);
      await expectGone(path);
    }
  });

  test('tells nothing: expired', async () => {
    for (const body of kinds()) {
      const { path, id } = await opened(body);
      await server.database.pool.query(`UPDATE share_links SET expires_at = now() - interval '1 second' WHERE id = $1`, [id]);
      await expectGone(path);
    }
  });

  test('tells nothing: its run is being erased', async () => {
    const uploaded = seeded('erased preview', { steps: 1, tasks: 1, n: 2 });
    await upload(server, 'erased preview', uploaded);
    const [a, b] = uploaded.map(({ id }) => id);
    const links = [];
    for (const body of [
      { run: 'erased preview' },
      { run: 'erased preview', q: '' },
      { runs: ['previewed', 'erased preview'] },
      { rollout: a },
      { rollouts: [a, b] },
      { rollouts: [shown[0]!.id, a] },
    ])
      links.push(await opened(body));
    await server.database.pool.query(`UPDATE runs SET deleted_at = now() WHERE name = 'erased preview'`);
    for (const { path } of links) await expectGone(path);
  });

  test('is not found by part of its token, in another case, or with more behind it', async () => {
    const { path } = await create({ run: 'previewed' });
    const token = path.split('/').at(-1)!;
    const swapped = [...token].map((one) => (one === one.toLowerCase() ? one.toUpperCase() : one.toLowerCase())).join('');
    for (const one of [token.slice(0, -1), `${token}A`, swapped, `${token}%20`, encodeURIComponent(`${token}/`)])
      expect([one, (await open(`/share/${one}`)).status]).toEqual([one, 404]);
  });
});

test('many links of an organisation at once are answered or refused with an error of the catalogue, and work afterwards', async () => {
  const links = await Promise.all(Array.from({ length: 24 }, (_, i) => create({ run: 'previewed', q: `step:${i}` })));
  const answers = await Promise.all(links.map(({ path }) => open(`${path}/image.png`)));
  for (const answer of answers) {
    expect([200, 429]).toContain(answer.status);
    if (answer.status === 429) expect(await answer.json()).toMatchObject({ code: 'capacity_exhausted' });
  }
  // Who opens a link in a browser reaches its page, whatever the previews cost.
  const pages = await Promise.all(links.map(async () => open((await create({ run: 'previewed' })).path)));
  expect(pages.map(({ status }) => status)).toEqual(links.map(() => 200));
  for (const { path } of links.slice(0, 4)) expect((await open(`${path}/image.png`)).status).toBe(200);
});

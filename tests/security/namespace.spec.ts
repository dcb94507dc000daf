import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { migrate } from '../../apps/api/src/server.ts';
import { createOrganisation, signIn } from '../support/organisation.ts';
import { createDatabase, sharedServer, type TestServer } from '../support/server.ts';

/** Finding H3 of the audit: organisations and people share one namespace, so nobody publishes in the namespace of somebody else. */

let server: TestServer;
/** Headers of the owner of another organisation. */
let attacker: Record<string, string>;
beforeAll(async () => {
  server = await sharedServer();
  attacker = { 'x-api-key': (await createOrganisation(server.url, server.apiKey)).apiKey };
});

/** A user of the attacker's organisation with this name publishes in the namespace of this name; what the attacker obtained. */
async function hijack(
  name: string,
  namespace: string | null,
  environmentName = 'math',
): Promise<{ member: number; published: number | null }> {
  const { status, body } = await server.request('POST', '/v1/members', { headers: attacker, body: { name, role: 'owner' } });
  if (status !== 200) return { member: status, published: null };
  const headers = { 'x-api-key': '', cookie: await signIn(body.sign_in_url), 'sec-fetch-site': 'same-origin' };
  const environment = { name: environmentName, namespace: namespace ?? name, isPrivate: false };
  return { member: status, published: (await server.request('POST', '/v1/environments', { headers, body: environment })).status };
}
const zeroWidth = '\u200B';
const variants: [string, (name: string) => string][] = [
  ['as it is', (name) => name],
  ['in upper case', (name) => name.toUpperCase()],
  ['with spaces around it', (name) => ` ${name}\u00A0`],
  ['with full-width letters', (name) => name.replaceAll(/[a-z]/g, (letter) => String.fromCodePoint(letter.codePointAt(0)! + 0xfee0))],
  ['with a character that shows nothing', (name) => `${name.slice(0, 2)}${zeroWidth}${name.slice(2)}`],
  ['with a soft hyphen', (name) => `${name}\u00AD`],
  ['with a Cyrillic letter', (name) => name.replace('e', '\u0435')],
  [
    'with a Kelvin sign, a long s and a dotless i',
    (name) => name.replaceAll('k', '\u212A').replaceAll('s', '\u017F').replaceAll('i', '\u0131'),
  ],
];

describe('H3: one namespace for organisations and users', () => {
  test.each(variants)('the name of an organisation %s is refused for a user of another one', async (_case, variant) => {
    const name = variant(server.orgName);
    const { member, published } = await hijack(name, name.trim());
    expect([409, 422]).toContain(member);
    expect(published).toBeNull();
    expect((await server.request('GET', `/v1/environments?owner=${encodeURIComponent(name.trim())}`)).body.total).toBe(0);
  });

  test.each(variants)('the name of a user %s is refused for an organisation and another user', async (_case, variant) => {
    const name = `kim-sei-${crypto.randomUUID().slice(0, 8)}`;
    expect(await server.request('POST', '/v1/members', { body: { name } })).toMatchObject({ status: 200 });
    const organisation = await server.request('POST', '/v1/organisations', { headers: attacker, body: { name: variant(name) } });
    expect([409, 422]).toContain(organisation.status);
    expect([409, 422]).toContain((await hijack(variant(name), name)).member);
  });

  test('responses have typed codes, which do not reveal who has the name', async () => {
    const name = `bo-${crypto.randomUUID().slice(0, 8)}`;
    await server.request('POST', '/v1/members', { body: { name } });
    const taken = (path: string, body: object) => server.request('POST', path, { headers: attacker, body });
    expect(await taken('/v1/members', { name: server.orgName })).toMatchObject({ status: 409, body: { code: 'user_exists' } });
    expect(await taken('/v1/organisations', { name })).toMatchObject({ status: 409, body: { code: 'organisation_exists' } });
  });

  test.each([
    'palestra',
    'Palestra',
    'ｐalestra',
    'p\u0430lestra',
    'api',
    'ADMIN',
    'v1',
    'login',
    'openenv',
    'mcp',
    'runs',
    'environments',
    'health',
  ])('the reserved word %s is nobody’s name', async (word) => {
    expect([409, 422]).toContain((await hijack(word, 'palestra')).member);
    const organisation = await server.request('POST', '/v1/organisations', { headers: attacker, body: { name: word } });
    expect([409, 422]).toContain(organisation.status);
  });

  test('every fixed first segment of a documented route is reserved', async () => {
    const { body } = await server.request('GET', '/openapi.json');
    const words = new Set(Object.keys(body.paths as object).map((path) => path.split('/')[1]!));
    for (const word of [...words].filter((word) => /^[a-z0-9-]+$/.test(word))) {
      const answer = await server.request('POST', '/v1/organisations', { headers: attacker, body: { name: word } });
      expect(answer, word).toMatchObject({ status: 422, body: { code: 'name_reserved' } });
    }
  });

  test('users keep names in other scripts, which are not namespaces', async () => {
    const name = `\u0130nci Şafak ${crypto.randomUUID().slice(0, 8)}`;
    expect(await hijack(name, name)).toEqual({ member: 200, published: 403 });
    const plain = `ada-${crypto.randomUUID().slice(0, 8)}`;
    expect(await hijack(plain, plain)).toEqual({ member: 200, published: 200 });
  });

  test('two concurrent requests cannot both get a name, and the database refuses direct changes', async () => {
    const name = `twin-${crypto.randomUUID().slice(0, 8)}`;
    const answers = await Promise.all([
      server.request('POST', '/v1/members', { headers: attacker, body: { name } }),
      server.request('POST', '/v1/organisations', { body: { name } }),
    ]);
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
    const { pool } = server.database;
    await expect(pool.query('INSERT INTO users (name) VALUES ($1)', [server.orgName.toUpperCase()])).rejects.toMatchObject({
      code: '23505',
    });
    await expect(pool.query(`INSERT INTO organisations (name) VALUES ('Palestra')`)).rejects.toMatchObject({ code: '23505' });
    await expect(
      pool.query('UPDATE users SET name = $1 WHERE id = (SELECT user_id FROM memberships LIMIT 1)', [server.orgName]),
    ).rejects.toMatchObject({ code: '23505' });
  });
});

describe('H3: older databases', () => {
  /** A database as it was before the migration. */
  async function older() {
    const { url, drop } = await createDatabase();
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    onTestFinished(async () => {
      await pool.end();
      await drop();
    });
    await pool.query(`DROP TRIGGER users_hold_namespace ON users; DROP TRIGGER organisations_hold_namespace ON organisations;
      DROP FUNCTION hold_namespace; DROP TABLE namespaces; DROP FUNCTION namespace_key;
      DELETE FROM _prisma_migrations WHERE migration_name = '0022_namespaces'`);
    return { url, pool };
  }
  const orga = '00000000-0000-4000-8000-00000000000a';
  const orgb = '00000000-0000-4000-8000-00000000000b';

  test('collisions stop the upgrade with a list, until an operator renames them', async () => {
    const { url, pool } = await older();
    await pool.query(`INSERT INTO organisations (id, name) VALUES ('${orga}', 'orga'), ('${orgb}', 'orgb');
      INSERT INTO users (name) VALUES ('ann'), ('Orga'), ('palestra');
      INSERT INTO environments (org_id, owner, name, updated_at) VALUES ('${orgb}', 'Orga', 'math', now()), ('${orgb}', 'palestra', 'x', now())`);
    const refused = await migrate(url).then(
      () => '',
      (error: Error) => error.message,
    );
    for (const words of [
      'organisation "orga"',
      'user "Orga"',
      'environment "Orga/math"',
      'user "palestra"',
      'environment "palestra/x"',
      'Rename one of each',
    ])
      expect(refused).toContain(words);
    expect(refused).not.toContain('"ann"');
    await pool.query(`UPDATE users SET name = 'orga-person' WHERE name = 'Orga'; UPDATE users SET name = 'pal' WHERE name = 'palestra'`);
    // The environment would still be found as the organisation's.
    await expect(migrate(url)).rejects.toThrow('environment "Orga/math"');
    await pool.query(
      `UPDATE environments SET owner = 'orga-person' WHERE owner = 'Orga'; DELETE FROM environments WHERE owner = 'palestra'`,
    );
    await migrate(url);
    const { rows } = await pool.query('SELECT key FROM namespaces WHERE num_nonnulls(org_id, user_id) = 1 ORDER BY key');
    expect(rows.map(({ key }) => key)).toEqual(['ann', 'orga', 'orga-person', 'orgb', 'pal']);
  });

  test('without collisions they upgrade, also if a reserved word is already a name', async () => {
    const { url, pool } = await older();
    await pool.query(`INSERT INTO users (name) VALUES ('admin'), ('Ada Finch'), (E'\\u200B')`);
    await migrate(url);
    await expect(pool.query(`INSERT INTO organisations (name) VALUES ('ADA  FINCH')`)).rejects.toMatchObject({ code: '23505' });
  });
});

test('environments of others with the same name do not hide that of the organisation behind a bare name', async () => {
  const name = `bare-${randomUUID()}`;
  expect((await server.request('POST', '/v1/environments', { body: { name, isPrivate: true } })).status).toBe(200);
  for (let at = 0; at < 10; at += 1)
    expect(await hijack(`0${at}-${randomUUID().slice(0, 8)}`, null, name)).toMatchObject({ published: 200 });
  expect((await server.request('GET', `/v1/environments//${name}/required-secrets`)).status).toBe(200);
});

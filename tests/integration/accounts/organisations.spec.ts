import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { signIn } from '../../support/organisation.ts';
import { sharedServer, type TestServer } from '../../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await sharedServer();
});
afterAll(() => server.close());

/** A browser that signed in by a link: requests with its cookie, as the dashboard sends them. */
async function browserOf(link: string) {
  const cookie = await signIn(link);
  return (method: string, path: string, body?: unknown) =>
    server.request(method, path, {
      ...(body !== undefined && { body }),
      headers: { 'x-api-key': '', cookie, 'sec-fetch-site': 'same-origin' },
    });
}

describe('members', () => {
  it('join through a link, create keys, and lose both when they are removed', async () => {
    const { status, body: ada } = await server.request('POST', '/v1/members', { body: { name: 'ada' } });
    expect([status, ada.role, ada.keys]).toEqual([200, 'member', 0]);
    const browser = await browserOf(ada.sign_in_url);
    expect((await browser('GET', '/v1/me')).body).toMatchObject({ user: { name: 'ada' }, org: { name: server.orgName } });
    const { body: key } = await browser('POST', '/v1/keys', { name: 'her key' });
    const { body: list } = await server.request('GET', '/v1/members');
    expect(list.members.map(({ name, role, keys }: any) => [name, role, keys])).toEqual([
      ['me', 'owner', expect.any(Number)],
      ['ada', 'member', 1],
    ]);
    expect(await server.request('DELETE', `/v1/members/${ada.id}`)).toMatchObject({ status: 200 });
    expect(await browser('GET', '/v1/me')).toMatchObject({ status: 401 });
    expect(await server.request('GET', '/v1/me', { headers: { 'x-api-key': key.key } })).toMatchObject({
      status: 401,
      body: { code: 'key_revoked' },
    });
    expect(await server.request('DELETE', `/v1/members/${ada.id}`)).toMatchObject({ status: 404, body: { code: 'member_not_found' } });
  });

  it('may not do what requires an owner, until they are an owner', async () => {
    const { body: bob } = await server.request('POST', '/v1/members', { body: { name: 'bob' } });
    const browser = await browserOf(bob.sign_in_url);
    const refused = { status: 403, body: { code: 'owner_required' } };
    expect(await browser('POST', '/v1/members', { name: 'eve' })).toMatchObject(refused);
    expect(await browser('PATCH', '/v1/organisation', { retention_days: 1 })).toMatchObject(refused);
    expect(await browser('PATCH', `/v1/members/${bob.id}`, { role: 'owner' })).toMatchObject(refused);
    expect(await browser('GET', '/v1/organisation')).toMatchObject({ status: 200, body: { role: 'member' } });
    expect(await server.request('PATCH', `/v1/members/${bob.id}`, { body: { role: 'owner' } })).toMatchObject({ body: { role: 'owner' } });
    expect(await browser('PATCH', '/v1/organisation', { retention_days: 30 })).toMatchObject({ body: { retention_days: 30 } });
    expect(await browser('DELETE', `/v1/members/${bob.id}`)).toMatchObject({ status: 200 });
    await server.request('PATCH', '/v1/organisation', { body: { retention_days: null } });
  });

  it('keep at least one owner, also when two leave at the same time', async () => {
    const { body: me } = await server.request('GET', '/v1/me');
    const last = { status: 409, body: { code: 'last_owner' } };
    expect(await server.request('DELETE', `/v1/members/${me.user.id}`)).toMatchObject(last);
    const { body: org } = await server.request('POST', '/v1/organisations', { body: { name: 'duel' } });
    const first = await browserOf(org.sign_in_url);
    const { body: cid } = await first('POST', '/v1/members', { name: 'cid', role: 'owner' });
    const second = await browserOf(cid.sign_in_url);
    const answers = await Promise.all([first('DELETE', `/v1/members/${me.user.id}`), second('DELETE', `/v1/members/${cid.id}`)]);
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 409]);
  });

  it('are new users: a link for a user of another organisation would also open that one', async () => {
    expect(await server.request('POST', '/v1/members', { body: { name: 'me' } })).toMatchObject({
      status: 409,
      body: { code: 'user_exists' },
    });
  });
});

describe('organisations', () => {
  it('are entered through a link, and do not see each other', async () => {
    const { body } = await server.request('POST', '/v1/organisations', { body: { name: 'lab-2' } });
    expect(body.organisation).toMatchObject({ name: 'lab-2', role: 'owner', retention_days: null });
    const browser = await browserOf(body.sign_in_url);
    expect((await browser('GET', '/v1/me')).body.org.name).toBe('lab-2');
    expect((await browser('GET', '/v1/keys')).body.keys).toEqual([]);
    expect((await browser('GET', '/v1/members')).body.members.map(({ name }: any) => name)).toEqual(['me']);
    expect(await server.request('POST', '/v1/organisations', { body: { name: 'lab-2' } })).toMatchObject({
      status: 409,
      body: { code: 'organisation_exists' },
    });
    expect(await server.request('POST', '/v1/organisations', { body: { name: 'No Spaces' } })).toMatchObject({ status: 422 });
    // `/v1/runs` is no page of an organisation.
    expect(await server.request('POST', '/v1/organisations', { body: { name: 'v1' } })).toMatchObject({ status: 422 });
  });

  it('limit the sessions of all their keys', async () => {
    expect(await server.request('PATCH', '/v1/organisation', { body: { max_sessions: 7 } })).toMatchObject({ body: { max_sessions: 7 } });
    expect(await server.request('GET', '/v1/organisation')).toMatchObject({ body: { max_sessions: 7, name: server.orgName } });
  });
});

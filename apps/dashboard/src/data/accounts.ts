import { queryOptions } from '@tanstack/react-query';
import type { ChangeOrganisation, NewKey, NewMember, Role } from '@palestra/protocol';
import { api } from './http.ts';
import { queryClient } from './client.ts';
import { keys } from './queries.ts';

/** The organisation of the reader, its members, and its API keys. */

const organisationKey = ['organisation'] as const;
const membersKey = ['members'] as const;
const invalidate = (key: readonly string[]) => queryClient.invalidateQueries({ queryKey: key });

export const organisationQuery = queryOptions({
  queryKey: organisationKey,
  queryFn: ({ signal }) => api('GET /v1/organisation', { signal }),
});

export async function changeOrganisation(body: ChangeOrganisation): Promise<void> {
  queryClient.setQueryData(organisationKey, await api('PATCH /v1/organisation', { body }));
}

/** The returned `sign_in_url` opens the new organisation in a browser, once. */
export const createOrganisation = (name: string) => api('POST /v1/organisations', { body: { name } });

export const membersQuery = queryOptions({
  queryKey: membersKey,
  queryFn: async ({ signal }) => (await api('GET /v1/members', { signal })).members,
});

/** The returned `sign_in_url` signs the member in, once. */
export async function addMember(body: NewMember) {
  const added = await api('POST /v1/members', { body });
  await invalidate(membersKey);
  return added;
}

export const signInLink = async (id: string) => (await api('POST /v1/members/{id}/sign-in-link', { path: { id } })).sign_in_url;

export async function changeMember(id: string, role: Role): Promise<void> {
  await api('PATCH /v1/members/{id}', { path: { id }, body: { role } });
  await Promise.all([invalidate(membersKey), invalidate(organisationKey)]);
}

export async function removeMember(id: string): Promise<void> {
  await api('DELETE /v1/members/{id}', { path: { id } });
  // The server also revokes the member's keys.
  await Promise.all([invalidate(membersKey), invalidate(keys.apiKeys)]);
}

/** Only this response contains the whole key. */
export async function createApiKey(body: NewKey) {
  const created = await api('POST /v1/keys', { body });
  await invalidate(keys.apiKeys);
  return created;
}

/** Signed-in browsers: of all members for an owner, else those of the reader. */
const browserSessionsKey = ['browser-sessions'] as const;
export const browserSessionsQuery = queryOptions({
  queryKey: browserSessionsKey,
  queryFn: async ({ signal }) => (await api('GET /v1/browser-sessions', { signal })).browser_sessions,
});

export async function endBrowserSession(id: string): Promise<void> {
  await api('DELETE /v1/browser-sessions/{id}', { path: { id } });
  await invalidate(browserSessionsKey);
}

export async function revokeApiKey(id: string): Promise<void> {
  await api('DELETE /v1/keys/{id}', { path: { id } });
  // The server signs out browsers that signed in with the key.
  await Promise.all([invalidate(keys.apiKeys), invalidate(browserSessionsKey)]);
}

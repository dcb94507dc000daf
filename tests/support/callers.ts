import { randomUUID } from 'node:crypto';
import type { Caller } from '@palestra/session';
import { hashToken, newApiKey } from '../../apps/api/src/accounts/secret-token.ts';
import type { TestServer } from './server.ts';

const SCOPES = ['sessions', 'environments', 'rollouts', 'keys'];

/** Creates an organisation with one user and one key. Its name starts with `prefix`. */
export async function createCaller(server: TestServer, prefix: string): Promise<{ caller: Caller; headers: Record<string, string> }> {
  const { prisma } = server.database;
  const orgName = `${prefix}-${randomUUID().slice(0, 8)}`;
  const org = await prisma.organisation.create({ data: { name: orgName } });
  const user = await prisma.user.create({ data: { name: `${orgName}-user` } });
  const key = newApiKey();
  const row = await prisma.apiKey.create({
    data: { orgId: org.id, userId: user.id, name: 'test', prefix: key.slice(0, 9), hash: hashToken(key), scopes: SCOPES },
  });
  const caller = {
    userId: user.id,
    orgId: org.id,
    orgName,
    keyId: row.id,
    scopes: SCOPES,
    anonymous: false,
    maxSessions: { key: null, org: null },
  };
  return { caller, headers: { 'x-api-key': key } };
}

export async function ownerOf(server: TestServer): Promise<Caller> {
  const { body } = await server.request('GET', '/v1/me');
  return {
    userId: body.user.id,
    orgId: body.org.id,
    orgName: body.org.name,
    keyId: null,
    scopes: SCOPES,
    anonymous: false,
    maxSessions: { key: null, org: null },
  };
}

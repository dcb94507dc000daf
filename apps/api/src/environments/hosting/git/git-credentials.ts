import type { GitCredentials } from '@palestra/hosting';

/** Services of git accept any name with an access token, or this one. */
const TOKEN_USER = 'x-access-token';

/** Credentials for a repository at this URL: a key for ssh, a token otherwise. Null without any. */
export function gitCredentialsIn(values: Record<string, string>, url: string): GitCredentials | null {
  const { GIT_TOKEN: token, GIT_USERNAME: username, GIT_SSH_KEY: privateKey, GIT_KNOWN_HOSTS: knownHosts } = values;
  if (url.startsWith('ssh:')) return privateKey === undefined ? null : { kind: 'key', privateKey, knownHosts: knownHosts ?? null };
  return token === undefined ? null : { kind: 'password', username: username?.trim() || TOKEN_USER, password: token.trim() };
}

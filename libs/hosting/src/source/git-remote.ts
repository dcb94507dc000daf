import { chmod, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import path from 'node:path';
import { sourceInvalid } from './source-limits.ts';

/** `password`: also an access token. `key`: a private key of SSH; without `knownHosts`, the first key that the host shows is accepted. */
export type GitCredentials =
  | { kind: 'password'; username: string; password: string }
  | { kind: 'key'; privateKey: string; knownHosts: string | null };

/** Where Git fetches from, and how. */
export interface GitRemote {
  /** Without credentials. */
  url: string;
  /** `-c` options of Git. */
  settings: string[];
  variables: Record<string, string>;
}

const PORTS: Record<string, number> = { 'https:': 443, 'http:': 80, 'ssh:': 22, 'git:': 9418 };
/** Prints the user name or the password for which Git asks. */
const ASKPASS = `#!/bin/sh
case "$1" in
  Username*) printf '%s' "$PALESTRA_GIT_USERNAME" ;;
  *) printf '%s' "$PALESTRA_GIT_PASSWORD" ;;
esac
`;

/** The addresses of a host to which this service may connect; rejects if there are none. */
export type ResolveHost = (host: string, port: number) => Promise<readonly string[]>;

/**
 * Checks the URL of a repository and its host, and prepares the options of Git. Git connects to the addresses that were checked, not to those of
 * a second resolution. `folder`: private, for files with credentials. Throws `source_invalid`.
 */
export async function gitRemote(
  address: string,
  credentials: GitCredentials | null,
  folder: string,
  resolveHost: ResolveHost,
  allowsFiles: boolean,
): Promise<GitRemote> {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (allowsFiles && url?.protocol === 'file:') return { url: url.href, settings: [], variables: {} };
  if (url === null || PORTS[url.protocol] === undefined)
    throw sourceInvalid(`${JSON.stringify(address.slice(0, 200))} is no URL of a Git repository. Use https, http, ssh or git.`);
  if (url.password !== '') throw sourceInvalid('The URL of the repository has a password. Give it as credentials.');
  if (!/^\[?[\w.:-]+\]?$/.test(url.hostname) || url.hostname.startsWith('-'))
    throw sourceInvalid(`${JSON.stringify(url.hostname)} is no name of a host.`);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const port = Number(url.port) || PORTS[url.protocol]!;
  const addresses = await resolveHost(host, port).catch((error: NodeJS.ErrnoException) => {
    throw error.syscall === 'getaddrinfo' ? sourceInvalid(`The host ${host} is unknown (${error.code}). Check the URL.`, error) : error;
  });
  const [first] = addresses;
  if (first === undefined) throw sourceInvalid(`The host ${host} has no address that this service may reach.`);
  const username = decodeURIComponent(url.username);
  if (url.protocol === 'ssh:') return sshRemote(url, first, credentials, folder);
  if (credentials?.kind === 'key') throw sourceInvalid('An SSH key needs the URL of a repository that begins with ssh://.');
  url.username = '';
  if (url.protocol === 'git:') {
    url.hostname = isIP(first) === 6 ? `[${first}]` : first;
    return { url: url.href, settings: [], variables: {} };
  }
  const settings = ['http.followRedirects=false'];
  if (isIP(host) === 0) settings.push(`http.curloptResolve=${host}:${port}:${addresses.join(',')}`);
  return { url: url.href, settings, variables: await askpass(folder, username, credentials) };
}

async function askpass(
  folder: string,
  username: string,
  credentials: Extract<GitCredentials, { kind: 'password' }> | null,
): Promise<Record<string, string>> {
  const program = path.join(folder, 'askpass');
  await writeFile(program, ASKPASS, { mode: 0o700 });
  await chmod(program, 0o700);
  // Without credentials Git gets empty answers, and the server refuses them.
  const [user, password] = credentials === null ? [username, ''] : [credentials.username || username, credentials.password];
  return { GIT_ASKPASS: program, PALESTRA_GIT_USERNAME: user, PALESTRA_GIT_PASSWORD: password };
}

async function sshRemote(url: URL, address: string, credentials: GitCredentials | null, folder: string): Promise<GitRemote> {
  if (credentials?.kind === 'password') throw sourceInvalid('A password or token needs the URL of a repository that begins with https://.');
  const options = ['BatchMode=yes', 'IdentitiesOnly=yes', `HostName=${address}`, `HostKeyAlias=${url.hostname}`];
  const known = path.join(folder, 'known_hosts');
  const identity = path.join(folder, 'key');
  options.push(`UserKnownHostsFile=${known}`, 'GlobalKnownHostsFile=/dev/null');
  options.push(`StrictHostKeyChecking=${credentials?.knownHosts == null ? 'accept-new' : 'yes'}`);
  await writeFile(known, credentials?.knownHosts ?? '', { mode: 0o600 });
  if (credentials !== null) {
    await writeFile(identity, `${credentials.privateKey.trimEnd()}\n`, { mode: 0o600 });
    options.push(`IdentityFile=${identity}`);
  }
  const command = ['ssh', '-F', '/dev/null', ...options.flatMap((option) => ['-o', option])];
  return { url: url.href, settings: [], variables: { GIT_SSH_COMMAND: command.map((part) => `'${part}'`).join(' ') } };
}

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';

/** Git's own server (`git http-backend`) behind a small HTTP server on loopback. */
export interface GitRemote {
  /** Base of the URLs: `${url}/name.git`. */
  url: string;
  port: number;
  /** Command lines of all processes of this machine while a request of a repository ran. */
  commandLines: string[];
  close(): Promise<void>;
}

export const USER = 'deployer';
export const PASSWORD = 'hunter-2-secret';

const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.com', '-c', 'protocol.file.allow=always', ...args], {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  }).trim();

/** A bare repository with one commit of these files; a value that begins with `->` is a link. Returns the commit. */
export function createRepository(root: string, name: string, files: Record<string, string>): string {
  const work = path.join(root, `${name}.work`);
  mkdirSync(work);
  git(work, 'init', '--quiet', '--initial-branch=main');
  return commit(root, name, files);
}

/** Another commit of `main`, which the bare repository gets. */
export function commit(root: string, name: string, files: Record<string, string>): string {
  const work = path.join(root, `${name}.work`);
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(path.join(work, path.dirname(file)), { recursive: true });
    if (content.startsWith('->')) symlinkSync(content.slice(2), path.join(work, file));
    else writeFileSync(path.join(work, file), content);
  }
  git(work, 'add', '--all');
  git(work, 'commit', '--quiet', '--allow-empty', '--message', 'A commit');
  publish(root, name);
  return git(work, 'rev-parse', 'HEAD');
}

export const inWork = (root: string, name: string, ...args: string[]): string => git(path.join(root, `${name}.work`), ...args);

/** Copies the work tree's repository, with branches and tags, to where the server reads it. */
export function publish(root: string, name: string): void {
  const bare = path.join(root, `${name}.git`);
  execFileSync('rm', ['-rf', bare]);
  git(root, 'clone', '--quiet', '--bare', `${name}.work`, bare);
}

export async function serveGit(root: string): Promise<GitRemote> {
  const commandLines: string[] = [];
  const server = http.createServer((request, response) => {
    if (request.url!.startsWith('/slow.git/')) return;
    if (request.url!.startsWith('/moved.git/'))
      return void response.writeHead(302, { location: request.url!.replace('moved', 'plain') }).end();
    if (request.url!.startsWith('/private.git/') && request.headers.authorization !== basic(USER, PASSWORD))
      return void response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end();
    for (const pid of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) commandLines.push(commandLineOf(pid));
    backend(root, request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    commandLines,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const basic = (user: string, password: string): string => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;

function commandLineOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

/** CGI, as `git help http-backend` describes it. */
function backend(root: string, request: IncomingMessage, response: ServerResponse): void {
  const { pathname, search } = new URL(request.url!, 'http://x');
  const child = spawn('git', ['http-backend'], {
    env: {
      PATH: process.env['PATH'],
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: '1',
      PATH_INFO: pathname,
      QUERY_STRING: search.slice(1),
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.headers['content-type'] ?? '',
      HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
      GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
    },
  });
  request.pipe(child.stdin);
  child.stdin.on('error', () => {});
  let head: Buffer | null = Buffer.alloc(0);
  child.stdout.on('data', (chunk: Buffer) => {
    if (head === null) return void response.write(chunk);
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf('\r\n\r\n');
    if (end === -1) return;
    const headers = head
      .subarray(0, end)
      .toString()
      .split('\r\n')
      .map((line) => line.split(': ') as [string, string]);
    const status = Number.parseInt(headers.find(([name]) => name === 'Status')?.[1] ?? '200', 10);
    response.writeHead(status, Object.fromEntries(headers.filter(([name]) => name !== 'Status')));
    response.write(head.subarray(end + 4));
    head = null;
  });
  child.on('close', () => response.end());
}

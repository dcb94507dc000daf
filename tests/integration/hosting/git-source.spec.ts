import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type CloneOptions, cloneSource, digestOf, type GitSource } from '@palestra/hosting';
import { OutboundPolicy } from '@palestra/outbound';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { commit, createRepository, type GitRemote, inWork, PASSWORD, publish, serveGit, USER } from './git-remote.world.ts';

/** `cloneSource` against Git's own server on loopback. */
const root = mkdtempSync(path.join(tmpdir(), 'palestra-git-'));
const { signal } = new AbortController();
const local = new OutboundPolicy('allowed');
let remote: GitRemote;
let commits: { first: string; second: string };

beforeAll(async () => {
  const first = createRepository(root, 'plain', {
    'server.py': 'one',
    'env/environment.ts': 'e',
    'env/link': '->environment.ts',
    '.gitignore': 'x',
  });
  inWork(root, 'plain', 'tag', '--annotate', 'v1', '--message', 'Version 1');
  inWork(root, 'plain', 'branch', 'feature/old');
  const second = commit(root, 'plain', { 'server.py': 'two' });
  commits = { first, second };
  createRepository(root, 'private', { 'server.py': 'private' });
  remote = await serveGit(root);
});
afterAll(async () => {
  await remote?.close();
  rmSync(root, { recursive: true, force: true });
});

interface Cloned {
  folder: string;
  commit: string;
  notes: string[];
}

async function clone(name: string, source: Partial<GitSource> = {}, options: Partial<CloneOptions> = {}, stop = signal): Promise<Cloned> {
  const folder = mkdtempSync(path.join(root, 'clone-'));
  const url = source.url ?? `${remote.url}/${name}.git`;
  const limits = { maxBytes: 1_000_000, maxEntries: 1_000, seconds: 60 };
  const resolveHost = (host: string, port: number) => local.addresses(host, port);
  const cloned = await cloneSource(
    { ref: null, subdirectory: null, credentials: null, ...source, url },
    folder,
    { ...limits, resolveHost, ...options },
    stop,
  );
  return { folder, ...cloned };
}

const refused = (message: RegExp) => expect.objectContaining({ code: 'source_invalid', message: expect.stringMatching(message) as string });

describe('a repository', () => {
  test.each([
    ['the head', null, 'two'],
    ['a branch', 'feature/old', 'one'],
    ['an annotated tag', 'v1', 'one'],
    ['a full name', 'refs/heads/main', 'two'],
  ])('is fetched at %s', async (_, ref, content) => {
    const { folder, commit: found, notes } = await clone('plain', { ref });
    expect(readFileSync(path.join(folder, 'server.py'), 'utf8')).toBe(content);
    expect([found, notes]).toEqual([content === 'two' ? commits.second : commits.first, []]);
    expect(readdirSync(folder).toSorted()).toEqual(['.gitignore', 'env', 'server.py']);
    expect(readlinkSync(path.join(folder, 'env/link'))).toBe('environment.ts');
  });

  test('is fetched at a commit, with the same digest as on its branch', async () => {
    const [one, other] = await Promise.all([clone('plain', { ref: commits.first }), clone('plain', { ref: 'feature/old' })]);
    expect(one.commit).toBe(commits.first);
    expect(await digestOf(one.folder)).toBe(await digestOf(other.folder));
  });

  test('is fetched in part', async () => {
    const { folder } = await clone('plain', { subdirectory: './env/' });
    expect(readdirSync(folder).toSorted()).toEqual(['environment.ts', 'link']);
    await expect(clone('plain', { subdirectory: 'none' })).rejects.toEqual(refused(/no folder "none"/));
    await expect(clone('plain', { subdirectory: 'server.py' })).rejects.toEqual(refused(/no folder "server.py"/));
    await expect(clone('plain', { subdirectory: '../etc' })).rejects.toEqual(refused(/leaves the folder/));
  });

  test('that needs credentials says so, and gets them neither in arguments nor in the files', async () => {
    const credentials = { kind: 'password' as const, username: USER, password: PASSWORD };
    await expect(clone('private')).rejects.toEqual(refused(/asks for credentials/));
    await expect(clone('private', { credentials: { ...credentials, password: 'wrong' } })).rejects.toEqual(
      refused(/refuses the credentials/),
    );
    const { folder } = await clone('private', { credentials });
    expect(readFileSync(path.join(folder, 'server.py'), 'utf8')).toBe('private');
    expect(remote.commandLines.some((line) => line.includes('git') && line.includes('/private.git'))).toBe(true);
    expect(remote.commandLines.filter((line) => line.includes(PASSWORD))).toEqual([]);
    // Nothing of a clone is left beside its folder.
    expect(readdirSync(root).filter((name) => name.includes('.git-'))).toEqual([]);
  });

  test('is fetched from the address that was checked, whatever the name resolves to later', async () => {
    const asked: unknown[] = [];
    const url = `http://repository.invalid:${remote.port}/plain.git`;
    const resolveHost = async (...args: unknown[]) => {
      asked.push(args);
      return ['127.0.0.1'];
    };
    expect((await clone('plain', { url }, { resolveHost })).commit).toBe(commits.second);
    expect(asked).toEqual([['repository.invalid', remote.port]]);
  });
});

test('SSH gets the checked address, the key in a private file, and nothing of this user', async () => {
  const bin = path.join(root, 'bin');
  const seen = path.join(root, 'ssh.txt');
  mkdirSync(bin);
  // In the place of ssh: notes how it was called, and runs Git's command here instead of on the host.
  const program = `#!/bin/sh
for argument do last=$argument; echo "$argument" >> ${seen}; case $argument in IdentityFile=*) stat -c %a "\${argument#*=}" >> ${seen}; cat "\${argument#*=}" >> ${seen};; esac; done
exec sh -c "$last"
`;
  writeFileSync(path.join(bin, 'ssh'), program, { mode: 0o755 });
  const before = process.env['PATH'];
  process.env['PATH'] = `${bin}:${before}`;
  try {
    const url = `ssh://git@repository.invalid:2222${root}/plain.git`;
    const credentials = { kind: 'key' as const, privateKey: 'a private key', knownHosts: 'repository.invalid ssh-ed25519 AAAA' };
    const { commit: found } = await clone('plain', { url, credentials }, { resolveHost: async () => ['192.0.2.7'] });
    expect(found).toBe(commits.second);
    const lines = readFileSync(seen, 'utf8').split('\n');
    const options = [
      'HostName=192.0.2.7',
      'HostKeyAlias=repository.invalid',
      'StrictHostKeyChecking=yes',
      'IdentitiesOnly=yes',
      '/dev/null',
      '600',
      'a private key',
    ];
    expect(lines).toEqual(expect.arrayContaining([...options, 'git@repository.invalid', '2222']));
    await expect(
      clone('plain', { url, credentials: { kind: 'password', username: 'a', password: 'b' } }, { resolveHost: async () => ['192.0.2.7'] }),
    ).rejects.toEqual(refused(/begins with https/));
  } finally {
    process.env['PATH'] = before;
  }
});

describe('is refused with what to do:', () => {
  test.each<[string, Partial<GitSource>, RegExp]>([
    ['a branch that does not exist', { ref: 'nothing' }, /no branch, tag or commit "nothing"/],
    ['a commit that does not exist', { ref: '0123456789012345678901234567890123456789' }, /no branch, tag or commit "0123/],
    ['an option as a branch', { ref: '--upload-pack=touch /tmp/x' }, /is no branch/],
    ['a refspec', { ref: 'main:refs/heads/other' }, /is no branch/],
    ['a forced refspec', { ref: '+main' }, /is no branch/],
    ['another transport', { url: 'ext::sh -c "touch /tmp/x"' }, /is no URL of a Git repository/],
    ['a file', { url: 'file:///etc' }, /is no URL of a Git repository/],
    ['a path', { url: '/etc' }, /is no URL of a Git repository/],
    ['an option as a URL', { url: '--upload-pack=x' }, /is no URL of a Git repository/],
    ['the form of scp', { url: 'git@example.com:a/b.git' }, /is no URL of a Git repository/],
    ['an option as a host', { url: 'ssh://-oProxyCommand=x/a' }, /no URL|no name of a host/],
    ['a password in the URL', { url: 'http://a:b@127.0.0.1/a.git' }, /Give it as credentials/],
    ['a key over HTTP', { credentials: { kind: 'key', privateKey: 'x', knownHosts: null } }, /begins with ssh/],
  ])('%s', async (_, source, message) => {
    await expect(clone('plain', source)).rejects.toEqual(refused(message));
  });

  test('a repository that does not exist, is empty, or moved', async () => {
    await expect(clone('plain', { url: 'https://repository.invalid/a.git' })).rejects.toEqual(
      refused(/host repository\.invalid is unknown/),
    );
    await expect(clone('none')).rejects.toEqual(refused(/There is no repository at http:/));
    await expect(clone('redirects')).rejects.toEqual(refused(/There is no repository at http:/));
    await expect(clone('moved')).rejects.toEqual(refused(/redirects to another address/));
    mkdirSync(path.join(root, 'empty.work'));
    inWork(root, 'empty', 'init', '--quiet');
    publish(root, 'empty');
    await expect(clone('empty')).rejects.toEqual(refused(/is empty/));
  });

  test('a host that this service must not reach, with the error of the policy', async () => {
    const closed = new OutboundPolicy('refused');
    const resolveHost = (host: string, port: number) => closed.addresses(host, port);
    await expect(clone('plain', {}, { resolveHost })).rejects.toMatchObject({ code: 'upstream_address_refused' });
    await expect(clone('plain', { url: 'ssh://git@127.0.0.1/a.git' }, { resolveHost })).rejects.toMatchObject({
      code: 'upstream_address_refused',
    });
  });

  test('links out of the tree', async () => {
    createRepository(root, 'links', { 'server.py': 'x', passwords: '->/etc/passwd' });
    await expect(clone('links')).rejects.toEqual(refused(/"passwords" leads out of the folder/));
    createRepository(root, 'deep', { 'a/b/up': '->../..', out: '->a/b/up/..' });
    await expect(clone('deep')).rejects.toEqual(refused(/"out" leads out of the folder/));
  });

  test('too many bytes and too many files, before they are written', async () => {
    createRepository(root, 'zeros', { zeros: '0'.repeat(5_000_000) });
    await expect(clone('zeros')).rejects.toEqual(refused(/more than 1\.0 MiB/));
    // Ten names of ten trees, four times: 10 000 files in a repository of a few hundred bytes.
    createRepository(root, 'bomb', { seed: 'x' });
    const blob = inWork(root, 'bomb', 'hash-object', '-w', 'seed');
    let entry = `100644 blob ${blob}`;
    for (let depth = 0; depth < 4; depth += 1) {
      const names = Array.from({ length: 10 }, (_, index) => `${entry}\tf${index}`).join('\n');
      const tree = inWork(root, 'bomb', '-c', `alias.tree=!printf '%s\\n' '${names}' | git mktree`, 'tree');
      entry = `040000 tree ${tree}`;
    }
    inWork(root, 'bomb', 'update-ref', 'refs/heads/main', inWork(root, 'bomb', 'commit-tree', '-m', 'bomb', entry.split(' ')[2]!));
    publish(root, 'bomb');
    await expect(clone('bomb')).rejects.toEqual(refused(/more than 1000 files/));
  });

  test('a pack that is larger than the limit, while it arrives', async () => {
    const noise = Buffer.alloc(3_000_000);
    for (let at = 0, seed = 1; at < noise.length; at += 1) noise[at] = (seed = (seed * 48_271) % 2_147_483_647) & 0xff;
    createRepository(root, 'noise', { noise: noise.toString('latin1') });
    await expect(clone('noise', {}, { maxBytes: 100_000 })).rejects.toEqual(refused(/more than 0\.1 MiB/));
  });

  test('a server that does not answer, and a clone that is cancelled', async () => {
    await expect(clone('slow', {}, { seconds: 0.5 })).rejects.toEqual(refused(/did not arrive within 0\.5 s/));
    const stop = new AbortController();
    const running = clone('slow', {}, {}, stop.signal);
    setTimeout(() => stop.abort(new Error('cancelled')), 200);
    await expect(running).rejects.toThrow('cancelled');
  });
});

test('submodules and files of LFS are left out, and named', async () => {
  const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 123456789\n`;
  createRepository(root, 'parts', { '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n', 'server.py': 'x' });
  inWork(root, 'parts', 'submodule', '--quiet', 'add', path.join(root, 'plain.git'), 'libs/plain');
  // Without LFS on this machine, the pointer is stored as it is.
  commit(root, 'parts', { 'data/weights.bin': pointer });
  const { folder, notes } = await clone('parts');
  expect(notes).toEqual([
    '1 submodules are not fetched: libs/plain',
    '1 files are pointers of Git LFS, whose content is not fetched: data/weights.bin',
  ]);
  expect(readFileSync(path.join(folder, 'data/weights.bin'), 'utf8')).toBe(pointer);
  expect(existsSync(path.join(folder, 'libs/plain/server.py'))).toBe(false);
});

test('a repository in a file is fetched where a test allows it', async () => {
  const { commit: found } = await clone('plain', { url: `file://${root}/plain.git` }, { allowsFiles: true });
  expect(found).toBe(commits.second);
});

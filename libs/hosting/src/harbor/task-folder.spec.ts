import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import tar from 'tar-stream';
import { afterAll, expect, test } from 'vitest';
import { HostingError } from '../provider/hosting-error.ts';
import { egressOfTask } from './task-egress.ts';
import { packTaskFiles } from './task-files.ts';
import { findTasks, readTask } from './task-folder.ts';
import { resolveVariables } from './variables.ts';

const root = mkdtempSync(path.join(tmpdir(), 'palestra-harbor-'));
afterAll(() => rmSync(root, { recursive: true }));

let count = 0;
function taskWith(toml: string, files: Record<string, string | null> = {}): string {
  const folder = path.join(root, String((count += 1)), 'one');
  const all = { 'task.toml': toml, 'instruction.md': 'Do it.', 'environment/Dockerfile': 'FROM x', 'tests/test.sh': '', ...files };
  for (const [name, content] of Object.entries(all)) {
    if (content === null) continue;
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), content);
  }
  return folder;
}
const read = (toml: string, files?: Record<string, string | null>) => readTask(taskWith(toml, files), 'one');
const failure = (toml: string, files?: Record<string, string | null>) =>
  read(toml, files).then(
    () => null,
    (error: unknown) => (error instanceof HostingError ? `${error.code}: ${error.message}` : error),
  );

test('reads a task with the defaults of Harbor', async () => {
  expect(await read('')).toMatchObject({
    id: 'one',
    name: 'one',
    image: null,
    buildSeconds: 600,
    network: { kind: 'open' },
    steps: [{ instruction: 'Do it.', tests: ['tests'], solution: null, agentSeconds: null, verifierSeconds: 600, verifierUser: null }],
  });
});

test('reads present and old fields', async () => {
  const task = await read(
    `version = "1.0"
[task]
name = "acme/one"
[metadata]
tags = ["a"]
[verifier]
timeout_sec = 120.0
env = { KEY = "\${KEY}" }
[agent]
timeout_sec = 900
user = 1000
[environment]
memory = "2G"
cpus = 2
storage = "10G"
allow_internet = false
docker_image = "x:1"
[solution.env]
A = "b"`,
    { 'environment/Dockerfile': null, 'solution/solve.sh': '' },
  );
  expect(task).toMatchObject({
    name: 'acme/one',
    metadata: { tags: ['a'] },
    image: 'x:1',
    memoryMb: 2_048,
    cpus: 2,
    network: { kind: 'none' },
    solutionVariables: { A: 'b' },
    steps: [{ agentSeconds: 900, agentUser: '1000', verifierSeconds: 120, solution: 'solution', verifierVariables: { KEY: '${KEY}' } }],
  });
  expect((await read('[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["PyPI.org.", "*.acme.example"]')).network).toEqual({
    kind: 'hosts',
    hosts: ['pypi.org', '*.acme.example'],
  });
});

test('reads steps, which share tests and inherit settings', async () => {
  const toml =
    '[verifier]\ntimeout_sec = 5\n[[steps]]\nname = "a"\nmin_reward = 0.5\n[[steps]]\nname = "b"\n[steps.verifier]\ntimeout_sec = 9\n';
  const files = { 'instruction.md': null, 'steps/a/instruction.md': 'A', 'steps/b/instruction.md': 'B', 'steps/b/tests/test.sh': '' };
  expect((await read(toml, { ...files, 'steps/b/workdir/x': '' })).steps).toMatchObject([
    { name: 'a', instruction: 'A', tests: ['tests'], minReward: 0.5, verifierSeconds: 5, workdir: null },
    { name: 'b', instruction: 'B', tests: ['tests', 'steps/b/tests'], minReward: null, verifierSeconds: 9, workdir: 'steps/b/workdir' },
  ]);
});

test('refuses what Harbor refuses, and what cannot be had here', async () => {
  const invalid: [string, string, Record<string, string | null>?][] = [
    ['[agent', 'one/task.toml: line 1'],
    ['[agent]\ntimeout_sec = -1', 'one/task.toml: agent.timeout_sec'],
    ['[environment]\nmemory = "2 GB"', 'one/task.toml: environment.memory: expected a size'],
    ['[environment]\nallowed_hosts = ["a.b"]', 'allowed_hosts needs network_mode = "allowlist"'],
    ['[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["https://a.b"]', 'neither a host'],
    [
      '[environment]\ndocker_image = "localhost/palestra/x:1"',
      'one/task.toml: environment.docker_image: The image "localhost/palestra/x:1" ',
    ],
    ['[environment]\ndocker_image = "sha256:a1"', 'it is an id'],
    ['[[steps]]\nname = "../x"', 'one/task.toml: steps.0.name'],
    ['[[steps]]\nname = "a"\n[[steps]]\nname = "A"', 'two steps have the same name'],
    ['', 'There is no one/tests/test.sh.', { 'tests/test.sh': null }],
    ['', 'There is no one/instruction.md.', { 'instruction.md': null }],
    ['', 'neither environment/Dockerfile nor environment.docker_image', { 'environment/Dockerfile': null }],
  ];
  for (const [toml, message, files] of invalid) {
    const failed = await failure(toml, files);
    expect(failed, toml).toMatch(/^source_invalid: /);
    expect(failed, toml).toContain(message);
  }
  for (const toml of [
    '[environment]\nos = "Windows"',
    '[environment]\ngpus = 1',
    '[[environment.mcp_servers]]\nname = "x"\nurl = "http://x"',
    '[verifier]\nenvironment_mode = "separate"',
    '[verifier.environment]\ncpus = 1',
    '[agent]\nnetwork_mode = "no-network"',
    '[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["10.0.0.0/8"]',
  ])
    expect(await failure(toml), toml).toMatch(/^hosting_unsupported: one\/task\.toml: /);
  expect(await failure('', { 'environment/Dockerfile': null, 'environment/docker-compose.yaml': '' })).toMatch(/^hosting_unsupported/);
});

test('does not show canaries to agents', async () => {
  const { steps } = await read('', { 'instruction.md': '<!-- BENCHMARK canary GUID 1 -->\n# canary 2\n\nDo it.\n# canary stays\n' });
  expect(steps[0]!.instruction).toBe('Do it.\n# canary stays\n');
});

test('finds a task, a dataset and a folder of tasks', async () => {
  const one = taskWith('');
  expect(await findTasks(one)).toEqual(['.']);
  expect(await findTasks(path.dirname(one))).toEqual(['one']);
  expect(await findTasks(root)).toEqual([]);
  mkdirSync(path.join(root, 'other'));
  symlinkSync(path.dirname(one), path.join(root, 'other/tasks'));
  expect(await findTasks(path.join(root, 'other'))).toEqual(['tasks/one']);
});

test('uploads what links lead to, but nothing from outside of the task', async () => {
  const { signal } = new AbortController();
  const one = taskWith('', { 'environment/data.txt': 'the data', 'tests/.harborignore': '*' });
  symlinkSync('../environment/data.txt', path.join(one, 'tests/data.txt'));
  const packed = await text(packTaskFiles(one, [{ from: 'tests', to: '/tests' }], [{ name: '/logs' }], signal));
  expect(packed).toContain('the data');
  expect(packed).not.toContain('.harborignore');
  symlinkSync('/etc/passwd', path.join(one, 'tests/passwd'));
  await expect(text(packTaskFiles(one, [{ from: 'tests', to: '/tests' }], [], signal))).rejects.toThrow('leads out of its task');
  rmSync(path.join(one, 'tests/passwd'));
  symlinkSync('.', path.join(one, 'tests/again'));
  await expect(text(packTaskFiles(one, [{ from: 'tests', to: '/tests' }], [], signal))).rejects.toThrow('A link may lead in a circle');
});

test('creates folders with their mode and owner', async () => {
  const folders = [{ name: '/logs', mode: 0o755 }, { name: '/logs/verifier', mode: 0o700, uid: 1_000 }, { name: '/logs/agent' }];
  const found: string[] = [];
  const extract = packTaskFiles(taskWith(''), [], folders, new AbortController().signal).pipe(tar.extract());
  for await (const entry of extract) {
    const { name, mode, uid } = entry.header;
    found.push(`${name} ${mode?.toString(8)} ${uid}`);
    entry.resume();
  }
  expect(found).toEqual(['logs/ 755 0', 'logs/verifier/ 700 1000', 'logs/agent/ 777 0']);
});

test('fills in variables only where they are the whole value', () => {
  const known = { A: '1' };
  expect(resolveVariables({ a: '${A}', b: 'x${A}', c: '${B:-two}', d: '${B:-}' }, known).values).toEqual({
    a: '1',
    b: 'x${A}',
    c: 'two',
    d: '',
  });
  expect(resolveVariables({ a: '${B}', b: '${toString}' }, known).missing).toEqual(['B', 'toString']);
});

test('a task reaches what it wants and what its environment may reach', () => {
  const hosts = (...all: string[]) => ({ kind: 'hosts' as const, hosts: all });
  const [open, none] = [{ kind: 'open' as const }, { kind: 'none' as const }];
  expect(egressOfTask(open, none)).toEqual(none);
  expect(egressOfTask(none, open)).toEqual(none);
  expect(egressOfTask(open, hosts('a.b'))).toEqual(hosts('a.b'));
  expect(egressOfTask(hosts('a.b'), open)).toEqual(hosts('a.b'));
  expect(egressOfTask(hosts('x.a.b', 'c.d'), hosts('*.a.b', 'c.d', 'e.f'))).toEqual(hosts('x.a.b', 'c.d'));
  expect(egressOfTask(hosts('*.a.b'), hosts('x.a.b', 'a.b'))).toEqual(hosts('x.a.b'));
  expect(egressOfTask(hosts('a.b'), hosts('c.d'))).toEqual(none);
});

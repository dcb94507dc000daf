import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type BuildPlan, type LogLine, ProcessProvider } from '@palestra/hosting';
import { afterAll, describe, expect, test } from 'vitest';
import { answerOf, backend, folderOf, forget, isThere, KIT_ENVIRONMENT, processesOf, requestOf, root, specOf } from './process.world.ts';

/** Builds of `ProcessProvider` by the real pip and npm, without packages of a registry. */
const hasPython = spawnSync('python3', ['-m', 'venv', '--help']).status === 0;
if (!hasPython && process.env['CI']) throw new Error('python3 with venv and pip must be installed (see .ci/run)');
const folder = path.join(root, 'hosting');
const builds = path.join(folder, 'builds');
const provider = new ProcessProvider({ folder });
const { signal } = new AbortController();

afterAll(async () => {
  for (const { id } of await provider.list()) await provider.remove(id, 0, signal);
  forget();
});

const PYTHON: BuildPlan = {
  kind: 'python',
  install: ['pyproject.toml'],
  packages: [],
  server: { command: 'python', args: ['-c', 'import served; served.run("{host}", {port})'], cwd: '.', variables: {} },
};
const NODE: BuildPlan = { kind: 'node', install: true, server: { command: 'node', args: ['server.cjs'], cwd: '.', variables: {} } };

/** A wheel, which the backend of the folder writes. */
const WHEEL = `import zipfile
code = "import http.server\\\\nclass Handler(http.server.BaseHTTPRequestHandler):\\\\n def do_GET(self):\\\\n  self.send_response(200); self.end_headers(); self.wfile.write(b'from the package')\\\\ndef run(host, port): http.server.HTTPServer((host, port), Handler).serve_forever()\\\\n"
with zipfile.ZipFile(os.path.join(_[0], "my_env-1-py3-none-any.whl"), "w") as wheel:
    wheel.writestr("served.py", code)
    wheel.writestr("my_env-1.dist-info/METADATA", "Metadata-Version: 2.1\\\\nName: my-env\\\\nVersion: 1\\\\n")
    wheel.writestr("my_env-1.dist-info/WHEEL", "Wheel-Version: 1.0\\\\nRoot-Is-Purelib: true\\\\nTag: py3-none-any\\\\n")
    wheel.writestr("my_env-1.dist-info/RECORD", "")
print("built in", os.environ["HOME"], sorted(name for name in os.environ if "SERVICE" in name))
return "my_env-1-py3-none-any.whl"`.replaceAll('\\\\n', '\\n');

async function build(files: Record<string, string>, plan: BuildPlan, more = {}, stop = signal, source = folderOf(files)) {
  const lines: LogLine[] = [];
  const artifact = await provider
    .build(requestOf({ kind: 'folder', folder: source, plan }, more), (line) => lines.push(line), stop)
    .catch((error: unknown) => error as Error);
  return { artifact, texts: lines.map(({ text }) => text) };
}

test('tasks of Harbor are refused, because they need containers', async () => {
  const { artifact, texts } = await build({ 'task.toml': '', 'instruction.md': '' }, { kind: 'harbor', tasks: ['.'] });
  expect(artifact).toMatchObject({ code: 'hosting_unsupported', message: expect.stringContaining('Use the docker provider.') });
  expect(texts).toEqual([]);
});

test.skipIf(!hasPython)('a Python package is installed once, and served from its build', async () => {
  process.env['SECRET_OF_THE_SERVICE'] = 'do not tell';
  const source = folderOf(backend(WHEEL));
  const { artifact, texts } = await build({}, PYTHON, {}, signal, source);
  delete process.env['SECRET_OF_THE_SERVICE'];
  if (artifact instanceof Error || artifact.kind !== 'folder') throw artifact as Error;
  expect(texts.some((text) => /pip .*install .*\.$/.test(text))).toBe(true);
  expect(artifact.digest).toMatch(/^sha256:[0-9a-f]{64}$/);
  const spec = specOf(artifact);
  const { endpoint } = await provider.ensure(spec, signal);
  expect(await answerOf(endpoint!)).toBe('from the package');

  const again = await build({}, PYTHON, {}, signal, source);
  expect(again).toEqual({ artifact, texts: ['An equal build is already there.'] });
  const other = await build({}, { ...PYTHON, server: { ...PYTHON.server, args: ['other'] } }, {}, signal, source);
  expect(other.artifact).not.toMatchObject({ digest: artifact.digest });

  // A new build stays a while; an old one stays if a version names it or an instance runs it.
  const { digest: otherDigest, folder: otherFolder } = other.artifact as typeof artifact;
  await provider.prune(new Set(), signal);
  expect([isThere(artifact.folder), isThere(otherFolder)]).toEqual([true, true]);
  for (const one of [artifact.folder, otherFolder]) utimesSync(one, 1, 1);
  await provider.prune(new Set([otherDigest]), signal);
  expect([isThere(artifact.folder), isThere(otherFolder)]).toEqual([true, true]);
  await provider.prune(new Set(), signal);
  expect([isThere(artifact.folder), isThere(otherFolder)]).toEqual([true, false]);
  await provider.remove(spec.id, 1_000, signal);
  await provider.prune(new Set(), signal);
  expect(isThere(artifact.folder)).toBe(false);
});

test.skipIf(!hasPython)('a build with the package "palestra" of one release is not that of another', async () => {
  const files = backend(WHEEL);
  const own = folderOf({ ...files, 'pyproject.toml': files['pyproject.toml']!.replace('my-env', 'palestra'), 'src/release.txt': '1' });
  writeFileSync(path.join(own, 'backend.py'), files['backend.py']!.replaceAll('my_env', 'palestra').replace('my-env', 'palestra'));
  const service = new ProcessProvider({ folder, pythonPackage: own });
  const plan: BuildPlan = { ...PYTHON, install: [], packages: ['palestra'] };
  const request = requestOf({ kind: 'folder', folder: folderOf({}), plan });
  const digest = async () => (await service.build(request, () => {}, signal)).digest;
  const first = await digest();
  expect(await digest()).toBe(first);
  writeFileSync(path.join(own, 'src/release.txt'), '2');
  expect(await digest()).not.toBe(first);
});

test('npm installs what the lockfile says, and runs no scripts', async () => {
  const files = {
    'package.json': '{"name":"e","version":"1.0.0","dependencies":{"dep":"file:./dep"},"scripts":{"postinstall":"touch ran"}}',
    'package-lock.json': JSON.stringify({
      name: 'e',
      version: '1.0.0',
      lockfileVersion: 3,
      packages: {
        '': { name: 'e', version: '1.0.0', dependencies: { dep: 'file:./dep' } },
        dep: { version: '1.0.0', hasInstallScript: true },
        'node_modules/dep': { resolved: 'dep', link: true },
      },
    }),
    'dep/package.json': '{"name":"dep","version":"1.0.0","main":"main.js","scripts":{"install":"touch ../ran"}}',
    'dep/main.js': 'module.exports = "from the dependency";',
    'server.cjs': `require('node:http').createServer((_, response) => response.end(require('dep'))).listen(process.env.PORT, process.env.HOST);`,
  };
  const { artifact } = await build(files, NODE);
  if (artifact instanceof Error || artifact.kind !== 'folder') throw artifact as Error;
  expect(readdirSync(path.join(artifact.folder, 'app'))).not.toContain('ran');
  const spec = specOf(artifact);
  const { endpoint } = await provider.ensure(spec, signal);
  expect(await answerOf(endpoint!)).toBe('from the dependency');
  await provider.remove(spec.id, 1_000, signal);
});

test.skipIf(!hasPython)('a build gets no credentials of the operator', async () => {
  Object.assign(process.env, { PIP_EXTRA_INDEX_URL: 'http://me:hidden-password@127.0.0.1:9/simple', PIP_NO_INDEX: '1', UV_NO_INDEX: '1' });
  try {
    const body = `print("variables", sorted(os.environ.items()))\n${WHEEL}`;
    const { artifact, texts } = await build(backend(body), { ...PYTHON, packages: ['palestra-test-absent'] });
    expect(artifact).toBeInstanceOf(Error);
    expect(texts).toContain('PIP_EXTRA_INDEX_URL of the server has a password, which builds do not get.');
    expect([...texts, (artifact as Error).message].join()).not.toContain('hidden-password');
  } finally {
    for (const name of ['PIP_EXTRA_INDEX_URL', 'PIP_NO_INDEX', 'UV_NO_INDEX']) delete process.env[name];
  }
});

describe.skipIf(!hasPython)('a build fails', () => {
  test('with the line that says why', async () => {
    const body = 'print("compiling")\nraise RuntimeError("error: no compiler for part 7")';
    const { artifact, texts } = await build(backend(body), PYTHON);
    expect(artifact).toMatchObject({
      code: 'build_failed',
      message: expect.stringMatching(/pip .*install .* failed with status 1: .*rror/) as string,
    });
    const { line } = artifact as unknown as { line: number };
    expect(texts[line - 1]).toMatch(/error/i);
  });

  test('for a server with an error of syntax, before its packages are installed', async () => {
    const files = {
      'server.py': 'import a_package\n\ndef step(:\n    pass\n',
      'requirements.txt': './absent',
      'types.py': 'raise ValueError("shadow")',
    };
    const { artifact, texts } = await build(files, { ...PYTHON, install: ['requirements.txt'], entry: 'server.py' });
    expect(artifact).toMatchObject({
      code: 'build_failed',
      message: expect.stringMatching(/py_compile server\.py failed with status 1: server\.py, line 3: SyntaxError: /) as string,
    });
    const { line } = artifact as unknown as { line: number };
    expect(texts[line - 1]).toMatch(/^SyntaxError: /);
    expect(texts.some((text) => text.includes('install'))).toBe(false);
  });

  test('for a file of requirements that does not exist', async () => {
    const { artifact, texts } = await build({ 'server.py': '' }, { ...PYTHON, install: ['none.txt'] });
    expect(artifact).toMatchObject({ code: 'build_failed', message: expect.stringContaining('none.txt') as string });
    expect(texts[(artifact as unknown as { line: number }).line - 1]).toContain('none.txt');
  });

  test('when it does not end, with everything that it started', async () => {
    const body = 'subprocess.Popen(["sleep", "1000"], start_new_session=True)\ntime.sleep(1000)';
    const { artifact } = await build(backend(body), PYTHON, {
      limits: { ...requestOf({ kind: 'image', image: 'x', port: null }).limits, seconds: 4 },
    });
    expect(artifact).toMatchObject({ code: 'build_timeout', message: expect.stringContaining('longer than 4 s') as string });
    await expect.poll(() => processesOf(path.join(builds, '.new-'))).toEqual([]);
  });

  test('when it is cancelled, with everything that it started', async () => {
    const stop = new AbortController();
    const marker = path.join(root, 'began');
    const running = build(
      backend(`open(${JSON.stringify(marker)}, "w")\nsubprocess.Popen(["sleep", "1000"])\ntime.sleep(1000)`),
      PYTHON,
      {},
      stop.signal,
    );
    await expect.poll(() => isThere(marker), { timeout: 90_000 }).toBe(true);
    stop.abort(new Error('cancelled by the author'));
    expect((await running).artifact).toMatchObject({ code: 'build_cancelled' });
    await expect.poll(() => processesOf(path.join(builds, '.new-'))).toEqual([]);
  });

  test('when it grows too large', async () => {
    const body = 'with open("large", "wb") as file:\n    while True: file.write(os.urandom(1000000)); file.flush()';
    const { artifact } = await build(backend(body), PYTHON, {
      limits: { ...requestOf({ kind: 'image', image: 'x', port: null }).limits, maxBytes: 60_000_000 },
    });
    expect(artifact).toMatchObject({ code: 'build_failed', message: expect.stringContaining('larger than 57.2 MiB') as string });
  });
});

test('a Dockerfile is replaced by the server that the folder has, or refused', async () => {
  const dockerfile: BuildPlan = { kind: 'dockerfile', dockerfile: 'Dockerfile', port: null, variables: {} };
  const { artifact, texts } = await build({ Dockerfile: 'FROM x', 'environment.ts': KIT_ENVIRONMENT }, dockerfile);
  expect(artifact).toMatchObject({ kind: 'folder', server: { command: 'node', cwd: 'app' } });
  expect(texts[0]).toContain('Dockerfile is ignored');
  const refused = { code: 'hosting_unsupported', message: expect.stringContaining('cannot build Dockerfile') as string };
  expect((await build({ Dockerfile: 'FROM x' }, dockerfile)).artifact).toMatchObject(refused);
  const limits = { ...requestOf({ kind: 'image', image: 'x', port: null }).limits, network: false };
  expect((await build({ 'environment.ts': '' }, NODE, { limits })).artifact).toMatchObject({ code: 'hosting_unsupported' });
  const image = requestOf({ kind: 'image', image: 'x', port: null });
  await expect(provider.build(image, () => {}, signal)).rejects.toMatchObject({ code: 'hosting_unsupported' });
  await expect(
    new ProcessProvider({ folder, python: 'no-python' }).build(
      requestOf({ kind: 'folder', folder: folderOf({ a: '' }), plan: PYTHON }),
      () => {},
      signal,
    ),
  ).rejects.toMatchObject({
    code: 'hosting_unsupported',
    message: expect.stringContaining('no-python') as string,
  });
  expect(readFileSync(path.join((artifact as { folder: string }).folder, 'app/environment.ts'), 'utf8')).toBe(KIT_ENVIRONMENT);
});

test('nothing is left of builds that failed', () => {
  expect([readdirSync(builds).filter((name) => name.startsWith('.')), processesOf(builds)]).toEqual([[], []]);
});

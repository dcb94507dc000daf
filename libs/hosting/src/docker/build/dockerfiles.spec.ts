import { expect, test } from 'vitest';
import { assertNoBuildKit, assertNoHostAccess, generateDockerfile, withVariables } from './dockerfiles.ts';

const images = { python: 'python:3.12-slim', node: 'node:22-slim' };
const server = {
  command: 'python',
  args: ['-m', 'uvicorn', 'app:app', '--host', '{host}', '--port', '{port}'],
  cwd: 'server',
  variables: {},
};

test('dependencies of Python come before the code, and the server is no root', () => {
  const plan = { kind: 'python', install: ['requirements.txt', 'pyproject.toml'], packages: ['uvicorn>=0.30'], server } as const;
  expect(generateDockerfile(plan, { images, files: new Set() }).split('\n')).toEqual([
    'FROM python:3.12-slim',
    'WORKDIR /app',
    'ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1',
    'COPY ["source/requirements.txt","/app/requirements.txt"]',
    'RUN ["python", "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check", "-r", "requirements.txt"]',
    'RUN ["python", "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check", "uvicorn>=0.30"]',
    'COPY source /app',
    'RUN ["python", "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check", "/app"]',
    'USER 65534:65534',
    'EXPOSE 8000',
    'WORKDIR /app/server',
    'ENTRYPOINT []',
    'CMD ["python","-m","uvicorn","app:app","--host","0.0.0.0","--port","8000"]',
    '',
  ]);
});

test('the syntax of the server is checked before packages are installed, which a change of it does not repeat', () => {
  const plan = { kind: 'python', install: ['requirements.txt'], packages: [], entry: 'server/app.py', server } as const;
  const lines = generateDockerfile(plan, { images, files: new Set() }).split('\n');
  expect(lines.slice(0, 5)).toEqual([
    'FROM python:3.12-slim AS syntax',
    'WORKDIR /app',
    'COPY ["source/server/app.py","/app/server/app.py"]',
    'RUN ["python","-I","-m","py_compile","server/app.py"]',
    'FROM python:3.12-slim',
  ]);
  const copied = lines.indexOf('COPY --from=syntax ["/app/server/app.py","/app/server/app.py"]');
  expect(copied).toBe(lines.indexOf('COPY source /app') + 1);
  expect(lines.findIndex((line) => line.includes('requirements.txt'))).toBeLessThan(copied);
});

test('the package "palestra" comes from the context, never by its name from an index', () => {
  const plan = { kind: 'python', install: [], packages: ['palestra[serve-verifiers]', 'palestra-x'], server } as const;
  const files = new Set<string>();
  const lines = (options: object) => generateDockerfile(plan, { images, files, ...options }).split('\n');
  const pip = 'RUN ["python", "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check"';
  expect(lines({})).toEqual(
    expect.arrayContaining(['COPY python-package /opt/palestra-python', `${pip}, "/opt/palestra-python[serve-verifiers]", "palestra-x"]`]),
  );
  expect(lines({ pythonPackage: 'palestra-1-py3-none-any.whl' })).toContain(
    `${pip}, "/opt/palestra-python/palestra-1-py3-none-any.whl[serve-verifiers]", "palestra-x"]`,
  );
});

test('packages of Node.js are those of the lock file', () => {
  const plan = { kind: 'node', install: true, server: { ...server, command: 'node', args: ['{kit}', 'env.ts'] } } as const;
  expect(generateDockerfile(plan, { images, files: new Set(['package-lock.json']) })).toMatch(
    /COPY kit \/opt\/palestra\n[\s\S]*"npm", "ci"/,
  );
  expect(generateDockerfile(plan, { images, files: new Set(['package.json']) })).toContain('"npm", "install"');
  expect(generateDockerfile({ ...plan, install: false }, { images, files: new Set() })).not.toContain('npm"');
});

test('variables keep every character; what cannot be one is refused', () => {
  expect(withVariables('FROM a', { GREETING: 'say "hi" \\ $HOME' })).toBe('FROM a\nENV GREETING="say \\"hi\\" \\\\ \\$HOME"\n');
  for (const [name, value] of [
    ['A B', ''],
    ['A', 'two\nlines'],
    ['1', ''],
  ] as const) {
    expect(() => withVariables('FROM a', { [name]: value })).toThrow(`"${name}"`);
  }
});

test('a Dockerfile cannot ask for the network or the rights of the machine', () => {
  for (const text of [
    'RUN --network=host curl x',
    'run --mount=type=cache,target=/x --network=host y',
    'RUN \\\n  --network=host \\\n  y',
    'RUN --security=insecure mount',
    'ONBUILD RUN --network=host y',
    'RUN --network="host" y',
    'RUN \\\n# c\n--network=host id',
    'RUN \\\n  # c\n\n--network=host id',
    'RUN \\\n\n--network=host id',
    'RUN --net\\\nwork=host id',
    'RUN true #`\nRUN --network=host id',
    'RUN --"network=host" id',
    "RUN --'net'work=host id",
    'RUN --\\network=host id',
    'RUN --mount="a, b" --network=host id',
    'RUN --mount="a\\", b" --network=host id',
    'RUN --$WHAT=host id',
    'RUN --mount=type=cache,$WHAT id',
    'RUN --device=/dev/kvm id',
    'RUN cat <<EOF\nRUN --network=host id\nEOF',
    '\u00a0RUN --network=host id',
    'RUN x\r\nRUN --network=host id\r',
  ]) {
    expect(() => assertNoHostAccess(`FROM a\n${text}\n`), text).toThrow(/RUN --/);
  }
  for (const text of [
    'RUN curl --network=host',
    'RUN --network=none x',
    'RUN --network=default x',
    '# RUN --network=host',
    'RUN --mount=type=cache,target=/x y',
    'RUN echo \\\n  # c\n  --network=host',
    'RUN -- --network=host',
    'COPY --chown=$UID . /x',
  ]) {
    expect(() => assertNoHostAccess(`FROM a\n${text}\n`), text).not.toThrow();
  }
});

test('a Dockerfile that builders read in different ways is refused', () => {
  for (const [text, named] of [
    ['# escape=`\nFROM a\nRUN echo \\\nRUN --network=host id', 'Line 1 of the Dockerfile cannot be used: "# escape=`"'],
    ['# syntax=x\n#EscApe = `\nFROM a', 'Line 2'],
    ['FROM a\nRUN true \\\n\ufeff# c\nRUN --network=host id', 'invisible'],
    ['FROM a\n\u0085RUN --network=host id', 'invisible'],
    ['FROM a\nRUN true \\\\\nRUN --network=host id', 'two backslashes'],
    ['FROM a\nRUN --mount=\u00e0--network=host id', 'not ASCII'],
    ["FROM a\nRUN cat <<'E\\'\nE\\\nRUN --network=host id", 'has a backslash'],
  ] as const)
    expect(() => assertNoHostAccess(text), text).toThrow(named);
  for (const text of ['\ufeffFROM a', 'FROM a\nRUN echo "\u00e0" \\\\ x', 'FROM a\nRUN cat <<"EOF" | sh\na \\\nEOF', '# a\\\\\nFROM a'])
    expect(() => assertNoHostAccess(text), text).not.toThrow();
  // A quote that does not end, with characters that could be escaped or not, takes no time.
  assertNoHostAccess(`RUN --mount='${'\\a'.repeat(50_000)}`);
});

test('ADD loads files of the folder, and nothing that the engine would download', () => {
  for (const source of [
    'http://10.0.0.1/x',
    '["https://a/b", "/x"]',
    'git@a:b /x',
    '--chown=1:1 ssh://a/b.git /x',
    '$WHERE /x',
    '\\\n http://a /x',
    '["http:\\/\\/169.254.169.254\\/x","/x"]',
    '["http\\u003a\\u002f/169.254.169.254/x","/x"]',
    'http:/\\/169.254.169.254/x /x',
    'http:"//"169.254.169.254/x /x',
    'http:\\\n//169.254.169.254/ /x',
    '\\\n# c\nhttp://169.254.169.254/ /x',
  ])
    expect(() => assertNoHostAccess(`FROM a\nadd ${source}\n`), source).toThrow(/ADD/);
  for (const text of ['ADD files.tar.gz /x', 'ADD --chown=1:1 . /app', 'RUN curl http://a', 'COPY $A /x'])
    expect(() => assertNoHostAccess(`FROM a\n${text}\n`), text).not.toThrow();
});

test('what needs BuildKit is named', () => {
  for (const [text, named] of [
    ['RUN --mount=type=cache,target=/x y', 'RUN --mount=type=cache,target=/x'],
    ['RUN <<EOF\necho a\nEOF', 'RUN <<EOF'],
    ['copy <<-"END" /x\nRUN a\nEND', 'COPY <<-"END'],
    ['COPY --link a /x', 'COPY --link'],
    ['RUN \\\n  --mount=type=secret,id=a \\\n  y', 'RUN --mount=type=secret,id=a'],
  ] as const)
    expect(() => assertNoBuildKit(`FROM a\n${text}\n`), text).toThrow(`"${named}", which needs BuildKit`);
  for (const text of [
    'FROM --platform=linux/amd64 a',
    'COPY --from=a --chown=1 b /c',
    'RUN x --mount=y',
    'RUN echo $((1<<A))',
    'RUN ["a", "<<EOF"]',
  ])
    expect(() => assertNoBuildKit(`FROM a\n${text}\n`), text).not.toThrow();
});

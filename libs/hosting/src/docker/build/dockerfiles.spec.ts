import { expect, test } from 'vitest';
import { assertNoHostAccess, generateDockerfile, withVariables } from './dockerfiles.ts';
import { parseImageName } from './image-pull.ts';

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
    'RUN `\n  --network=host y',
    'RUN --security=insecure mount',
    'ONBUILD RUN --network=host y',
    'RUN --network="host" y',
  ]) {
    expect(() => assertNoHostAccess(`FROM a\n${text}\n`), text).toThrow(/RUN --/);
  }
  for (const text of [
    'RUN curl --network=host',
    'RUN --network=none x',
    'RUN --network=default x',
    '# RUN --network=host',
    'RUN --mount=type=cache,target=/x y',
  ]) {
    expect(() => assertNoHostAccess(`FROM a\n${text}\n`), text).not.toThrow();
  }
});

test.each([
  ['python', 'docker.io/library/python', 'latest'],
  ['python:3.12', 'docker.io/library/python', '3.12'],
  ['owner/name', 'docker.io/owner/name', 'latest'],
  ['ghcr.io/owner/name:1', 'ghcr.io/owner/name', '1'],
  ['localhost:5000/name', 'localhost:5000/name', 'latest'],
  ['localhost/name:2', 'localhost/name', '2'],
  ['name@sha256:abc', 'docker.io/library/name@sha256:abc', null],
])('%s is %s with the tag %s', (name, repository, tag) => {
  expect(parseImageName(name)).toEqual({ repository, tag });
});

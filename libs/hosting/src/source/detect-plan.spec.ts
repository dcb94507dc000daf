import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { detectPlan } from './detect-plan.ts';

const root = mkdtempSync(path.join(tmpdir(), 'palestra-plan-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

function folderOf(files: Record<string, string>): string {
  const folder = path.join(mkdtempSync(path.join(root, 'one-')), 'my_env');
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.join(folder, path.dirname(name)), { recursive: true });
    writeFileSync(path.join(folder, name), content);
  }
  return folder;
}
const detect = (files: Record<string, string>, options = {}) => detectPlan(folderOf(files), options);

const MANIFEST = 'name: guess_env\ndescription: Guess a number\nversion: 0.2.0\napp: server.app:app\nvariables: {DEPTH: 3}\n';
const PACKAGE = JSON.stringify({ name: '@team/my-game', dependencies: { '@palestra/environment-kit': '^1' }, devDependencies: { x: '1' } });
const pyproject = (text: string) => ({ 'pyproject.toml': `[project]\nname = "My.Env"\ndescription = "Plays"\n${text}` });

describe('a Dockerfile', () => {
  test('of the root comes first, with what else the folder says', async () => {
    const files = { Dockerfile: 'FROM x', 'server/Dockerfile': 'FROM y', 'server.py': '', 'README.md': '# Title\n\nIt plays.\n' };
    expect(await detect(files)).toEqual({
      plan: { kind: 'dockerfile', dockerfile: 'Dockerfile', port: null, variables: {} },
      facts: { kind: 'dockerfile', name: null, description: 'It plays.', readme: '# Title\n\nIt plays.\n', protocol: 'ors' },
    });
  });

  test('of an OpenEnv folder has the port and the variables of the manifest', async () => {
    const files = { 'server/Dockerfile': 'FROM y', 'server/app.py': '', 'openenv.yaml': `${MANIFEST}port: 8123\n` };
    expect(await detect(files)).toEqual({
      plan: { kind: 'dockerfile', dockerfile: 'server/Dockerfile', port: 8123, variables: { DEPTH: '3' } },
      facts: { kind: 'dockerfile', name: 'guess_env', description: 'Guess a number · version 0.2.0', readme: null, protocol: 'openenv' },
    });
  });

  test('can be named, and must exist inside', async () => {
    const files = { 'docker/prod.Dockerfile': 'FROM x', Dockerfile: 'FROM y' };
    expect((await detect(files, { dockerfile: './docker/prod.Dockerfile' })).plan).toMatchObject({ dockerfile: 'docker/prod.Dockerfile' });
    await expect(detect(files, { dockerfile: 'Other' })).rejects.toThrow('no Dockerfile at "Other"');
    await expect(detect(files, { dockerfile: '../Dockerfile' })).rejects.toMatchObject({ code: 'source_invalid' });
  });

  test('can be ignored', async () => {
    const { plan } = await detect({ Dockerfile: 'FROM x', 'server.py': '', 'requirements.txt': 'openreward\n' }, { dockerfile: null });
    expect(plan).toMatchObject({ kind: 'python', install: ['requirements.txt'], packages: ['uvicorn'] });
  });
});

describe('a kit module', () => {
  test.each([['environment.ts'], ['environment.js']])('%s is served by the kit of this installation', async (file) => {
    const { plan, facts } = await detect({ [file]: '', 'package.json': PACKAGE });
    expect(plan).toEqual({
      kind: 'node',
      install: false,
      server: { command: 'node', args: ['{kit}', file, '{host}', '{port}'], cwd: '.', variables: {} },
    });
    expect(facts).toMatchObject({ kind: 'kit', name: 'my-game', protocol: 'ors' });
  });

  test('of a manifest is found where it is, and must be in the folder', async () => {
    const { plan } = await detect({ 'src/game.ts': '', 'openenv.yaml': 'name: game\napp: src/game.ts\n' });
    expect(plan).toMatchObject({ server: { args: ['{kit}', 'src/game.ts', '{host}', '{port}'] } });
    await expect(detect({ 'openenv.yaml': 'name: game\napp: ../game.ts\n' })).rejects.toMatchObject({ code: 'source_invalid' });
    await expect(detect({ 'openenv.yaml': 'name: game\napp: none.ts\n' })).rejects.toThrow('no module "none.ts"');
  });

  test('with packages needs a lockfile', async () => {
    const files = { 'environment.ts': '', 'package.json': '{"dependencies":{"nanoid":"^5"}}' };
    await expect(detect(files)).rejects.toThrow('no package-lock.json');
    expect((await detect({ ...files, 'package-lock.json': '{}' })).plan).toMatchObject({ kind: 'node', install: true });
    await expect(detect({ ...files, 'package.json': '{' })).rejects.toMatchObject({ code: 'source_invalid' });
  });
});

describe('a Python server', () => {
  test('of OpenEnv is run by uvicorn', async () => {
    const { plan, facts } = await detect({ 'server/app.py': '', 'openenv.yaml': MANIFEST, ...pyproject('') });
    expect(plan).toMatchObject({ kind: 'python', install: ['pyproject.toml'], packages: ['uvicorn'], entry: 'server/app.py' });
    const { server } = plan as Extract<typeof plan, { kind: 'python' }>;
    expect([server.command, server.cwd, server.args.slice(2)]).toEqual(['python', '.', ['server.app:app', '{host}', '{port}', 'signal']]);
    expect(server.variables).toMatchObject({ DEPTH: '3', PYTHONUNBUFFERED: '1' });
    expect(facts).toMatchObject({ kind: 'openenv', name: 'guess_env', protocol: 'openenv' });
  });

  test('of an OpenEnv package is run by the name of the package, whatever the folder is called', async () => {
    const { plan, facts } = await detect({
      '__init__.py': '',
      'server/app.py': '',
      'server/requirements.txt': 'openenv\n',
      ...pyproject(''),
    });
    const { server, install, entry } = plan as Extract<typeof plan, { kind: 'python' }>;
    expect(entry).toBe('server/app.py');
    expect(server.args.slice(2)).toEqual(['My_Env.server.app:app', '{host}', '{port}', 'signal', 'My_Env']);
    expect([server.cwd, install, facts.name]).toEqual(['.', ['server/requirements.txt', 'pyproject.toml'], 'My-Env']);
  });

  test('that the manifest names must exist', async () => {
    await expect(detect({ 'openenv.yaml': 'name: a\napp: other.app:app\n' })).rejects.toThrow('other.app:app does not exist');
    await expect(detect({ 'openenv.yaml': 'name: [' })).rejects.toMatchObject({
      code: 'source_invalid',
      message: /^openenv\.yaml: .*line 1/,
    });
  });

  test('of openreward or ors is server.py', async () => {
    const { plan, facts } = await detect({ 'server.py': '', 'requirements.txt': 'openreward\n' });
    expect(plan).toMatchObject({ entry: 'server.py' });
    const { server } = plan as Extract<typeof plan, { kind: 'python' }>;
    expect([server.args.slice(2), facts.kind]).toEqual([['server.py', '{host}', '{port}', 'signal'], 'ors']);
  });
});

describe('a Python package', () => {
  test('of verifiers is served by palestra.serve, by the library of its version', async () => {
    const files = { 'my_env/__init__.py': 'from .main import load_environment\n' };
    const needing = (version: string) =>
      detect({ ...files, ...pyproject(`dependencies = ["Verifiers[rg]${version}; python_version > '3'"]\n`) });
    expect((await needing('>=0.4')).plan).toMatchObject({ install: ['pyproject.toml'], packages: ['palestra[serve-verifiers]'] });
    const expected = { install: ['pyproject.toml'], packages: ['palestra[serve-verifiers-legacy]'] };
    expect((await needing('>=0.1.5')).plan).toMatchObject(expected);
    const { plan, facts } = await detect({ 'my_env.py': 'def load_environment(): ...', ...pyproject('') });
    expect(plan).toMatchObject({
      ...expected,
      server: { args: ['-m', 'palestra.serve', 'verifiers-legacy:my_env', '--host', '{host}', '--port', '{port}'] },
    });
    expect(facts).toMatchObject({ kind: 'python', name: 'My-Env', description: 'Plays', protocol: 'ors' });
  });

  test('can name what serves it', async () => {
    const { plan } = await detect(pyproject('[tool.palestra]\nserve = "inspect:my_env/task"\n'));
    expect(plan).toMatchObject({
      packages: ['palestra[serve-inspect]'],
      server: {
        args: ['-m', 'palestra.serve', 'inspect:my_env/task', {}, {}, {}, {}].map((one) =>
          typeof one === 'string' ? one : (expect.anything() as string),
        ),
        variables: { PYTHONSAFEPATH: '1' },
      },
    });
    await expect(detect(pyproject('[tool.palestra]\nserve = "other:x"\n'))).rejects.toThrow('expected LIBRARY:ID');
    await expect(detect(pyproject('[project.entry-points.inspect_ai]\nmy_env = "my_env"\n'))).rejects.toThrow('tool.palestra');
  });

  test('can have a script that serves', async () => {
    const { plan, facts } = await detect(pyproject('[project.scripts]\nother = "a:b"\nmy-server = "my_env.main:run"\n'));
    expect(plan).toMatchObject({
      packages: [],
      server: {
        command: 'python',
        args: ['-c', 'import sys; from my_env.main import run; sys.exit(run())'],
        variables: { HOST: '{host}', PORT: '{port}' },
      },
    });
    expect(facts.protocol).toBeNull();
    await expect(detect(pyproject('[project.scripts]\nserve = "a; import os:b"\n'))).rejects.toMatchObject({ code: 'source_invalid' });
  });

  test('that is invalid is refused with its line', async () => {
    await expect(detect({ 'pyproject.toml': '[project]\nname = \n' })).rejects.toThrow(/^pyproject\.toml: line 2/);
    await expect(detect({ 'pyproject.toml': '[project]\nname = 3\n' })).rejects.toThrow('pyproject.toml: project.name');
  });
});

test('another folder is refused with what was looked for', async () => {
  await expect(detect({ 'main.py': '', 'requirements.txt': '' })).rejects.toThrow(
    /Dockerfile.*openenv\.yaml.*environment\.ts.*server\.py.*load_environment/,
  );
});

test('a task of Harbor and a folder of tasks are an environment', async () => {
  const harbor = { 'task.toml': '', 'instruction.md': '', 'tests/test.sh': '' };
  for (const [prefix, task] of Object.entries({ '': '.', 'one/': 'one', 'tasks/one/': 'tasks/one' })) {
    const files = Object.fromEntries(Object.entries(harbor).map(([name, content]) => [`${prefix}${name}`, content]));
    expect(await detect(files), prefix).toMatchObject({
      plan: { kind: 'harbor', tasks: [task] },
      facts: { kind: 'harbor', protocol: 'ors' },
    });
  }
});

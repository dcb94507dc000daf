import { existsSync } from 'node:fs';
import { lstat } from 'node:fs/promises';
import path from 'node:path';
import { findTasks } from '../harbor/task-folder.ts';
import type { BuildPlan } from '../provider/provider.port.ts';
import { cardOf, nameFrom } from '../target/card.ts';
import { ManifestError, type OpenEnvManifest } from '../target/openenv-manifest.ts';
import { readText } from '../target/read-text.ts';
import { libraryRequirement, librarySpec } from '../target/python-library.ts';
import { kitCommand, libraryCommand, openenvCommand, orsCommand, type ServeCommand } from '../target/serve-command.ts';
import { type FolderTarget, type PythonServer, TARGET_FILES, targetIn } from '../target/target.ts';
import { moduleOf, type PythonProject, readProject } from './python-project.ts';
import { safeParts } from './safe-path.ts';
import { sourceInvalid } from './source-limits.ts';
import { verifiersLibrary } from './verifiers-library.ts';

/** What a folder says about its environment. */
export interface SourceFacts {
  kind: 'dockerfile' | 'openenv' | 'ors' | 'kit' | 'python' | 'harbor';
  /** A valid name of an environment; null if the folder does not name it. */
  name: string | null;
  description: string;
  readme: string | null;
  /** What its server will speak, as far as the files tell; null: ask the server. */
  protocol: 'ors' | 'openenv' | null;
}

export interface DetectedPlan {
  plan: BuildPlan;
  facts: SourceFacts;
}

const DOCKERFILES = ['Dockerfile', 'server/Dockerfile'];
/** Placeholders of `ServerCommand`. */
const ADDRESS = { host: '{host}', port: '{port}', endsWithInput: false };
/** What `pip` installs from, by the first that exists. */
const REQUIREMENTS = ['requirements.txt', 'server/requirements.txt'];
const KIT = '@palestra/environment-kit';

/**
 * Finds out how a folder of checked source becomes a server. `dockerfile`: a path in the folder; null: ignore Dockerfiles, for builders that
 * cannot use them. Throws `source_invalid`, which says what was looked for.
 */
export async function detectPlan(folder: string, { dockerfile }: { dockerfile?: string | null } = {}): Promise<DetectedPlan> {
  const target = await targetIn(folder).catch((error: unknown) => {
    throw error instanceof ManifestError ? sourceInvalid(error.message, error) : error;
  });
  const project = await readProject(folder);
  const { description, readme } = await cardOf(folder, target?.manifest ?? null);
  const declared = target?.manifest != null && Object.keys(target.manifest.raw).length > 0 ? target.manifest.name : null;
  const about = {
    name: nameFrom(declared ?? project?.name ?? (await packageName(folder)) ?? '') || null,
    description: description || (project?.description ?? ''),
    readme,
  };
  const docker = dockerfile === null ? null : await findDockerfile(folder, dockerfile);
  if (docker !== null) {
    const protocol = target === null || target.kind === 'openenv' ? (target?.kind ?? null) : 'ors';
    return { plan: dockerfilePlan(docker, target?.manifest ?? null), facts: { kind: 'dockerfile', ...about, protocol } };
  }
  if (target !== null) {
    const plan = await targetPlan(folder, target, project);
    return { plan, facts: { kind: target.kind, ...about, protocol: target.kind === 'openenv' ? 'openenv' : 'ors' } };
  }
  const served = project === null ? null : await projectPlan(folder, project);
  if (served !== null) return { plan: served.plan, facts: { kind: 'python', ...about, protocol: served.protocol } };
  const tasks = await findTasks(folder);
  if (tasks.length > 0) return { plan: { kind: 'harbor', tasks }, facts: { kind: 'harbor', ...about, protocol: 'ors' } };
  throw sourceInvalid(
    `The folder has no environment. Looked for: a Dockerfile or server/Dockerfile; ${TARGET_FILES}; in pyproject.toml tool.palestra.serve ` +
      '(such as "inspect:package/task"), a package of verifiers with load_environment, or a script named "serve" or "server"; ' +
      'tasks of Harbor (task.toml and instruction.md).',
  );
}

async function findDockerfile(folder: string, named: string | undefined): Promise<string | null> {
  if (named === undefined) return DOCKERFILES.find((name) => existsSync(path.join(folder, name))) ?? null;
  const name = safeParts(named).join('/');
  const found = await lstat(path.join(folder, name)).catch(() => null);
  if (found?.isFile() !== true) throw sourceInvalid(`The folder has no Dockerfile at ${JSON.stringify(named)}.`);
  return name;
}

/** The port is that of `EXPOSE` unless the manifest sets one. */
function dockerfilePlan(dockerfile: string, manifest: OpenEnvManifest | null): BuildPlan {
  const port = manifest?.raw['port'] === undefined ? null : manifest.port;
  return { kind: 'dockerfile', dockerfile, port, variables: manifest?.variables ?? {} };
}

async function targetPlan(folder: string, target: FolderTarget, project: PythonProject | null): Promise<BuildPlan> {
  if (target.kind === 'kit') {
    const file = path.relative(folder, target.file).split(path.sep).join('/');
    if (!existsSync(target.file) || safeParts(file).length === 0) throw sourceInvalid(`The folder has no module ${JSON.stringify(file)}.`);
    const command = kitCommand(file, ADDRESS, 'node', '{kit}');
    return { kind: 'node', install: await installsPackages(folder), server: serverOf(command, '.', target.manifest) };
  }
  if (target.kind === 'ors')
    return pythonPlan(folder, project, ['uvicorn'], serverOf(orsCommand('server.py', ADDRESS, 'python'), '.', null), 'server.py');
  const { manifest } = target;
  const server = target.server;
  if (server === null)
    throw sourceInvalid(`The server module ${manifest.app ?? 'server.app:app'} does not exist. Set app in openenv.yaml.`);
  const command = openenvCommand(server.cwd === folder ? server : packageServer(folder, server.app, project, manifest), ADDRESS, 'python');
  return pythonPlan(folder, project, ['uvicorn'], serverOf(command, '.', manifest), fileOfModule(folder, server));
}

/** The file of the module that uvicorn loads; undefined if the folder does not have it. */
function fileOfModule(folder: string, { app, cwd }: PythonServer): string | undefined {
  const [module = ''] = app.split(':');
  const file = `${path.join(cwd, ...module.split('.'))}.py`;
  const name = path.relative(folder, file).split(path.sep).join('/');
  return existsSync(file) && !name.startsWith('../') ? name : undefined;
}

/** A folder that is a package itself. The name of its folder is lost in an archive, so the package is given its name. */
function packageServer(folder: string, app: string, project: PythonProject | null, manifest: OpenEnvManifest) {
  const [first = '', ...rest] = app.split('.');
  if (!existsSync(path.join(folder, '__init__.py')))
    throw sourceInvalid(`The server module ${app} is outside of the folder. Deploy the folder that contains it.`);
  const name = (project?.name ?? manifest.name).replaceAll(/[^A-Za-z0-9_]+/g, '_');
  const known = first === path.basename(folder) ? name : first;
  return { app: [known, ...rest].join('.'), cwd: folder, package: known };
}

/** Packages are installed only if the module needs some besides the kit, which this installation has. */
async function installsPackages(folder: string): Promise<boolean> {
  const text = await readText(path.join(folder, 'package.json'));
  if (text === null) return false;
  let dependencies: Record<string, unknown>;
  try {
    dependencies = (JSON.parse(text) as { dependencies?: Record<string, unknown> } | null)?.dependencies ?? {};
  } catch (error) {
    throw sourceInvalid(`package.json: ${(error as Error).message}`, error);
  }
  if (Object.keys(dependencies).every((name) => name === KIT)) return false;
  if (existsSync(path.join(folder, 'package-lock.json'))) return true;
  throw sourceInvalid('package.json has dependencies, but there is no package-lock.json. Run "npm install" and include the file.');
}

async function packageName(folder: string): Promise<string | null> {
  const text = await readText(path.join(folder, 'package.json'));
  try {
    const { name } = JSON.parse(text ?? '{}') as { name?: unknown };
    return typeof name === 'string' ? name.replace(/^@[^/]*\//, '') : null;
  } catch {
    return null;
  }
}

async function projectPlan(folder: string, project: PythonProject): Promise<{ plan: BuildPlan; protocol: 'ors' | null } | null> {
  if (project.serves !== null) {
    const library = librarySpec(project.serves);
    if (library === null)
      throw sourceInvalid(`pyproject.toml: tool.palestra.serve: expected LIBRARY:ID, not ${JSON.stringify(project.serves)}.`);
    return { plan: libraryPlan(folder, project, project.serves), protocol: 'ors' };
  }
  const found = moduleOf(folder, project);
  const definesIt = found !== null && (await definesEnvironment(path.join(folder, found.file)));
  if (found !== null && (project.needs.has('verifiers') || definesIt)) {
    const library = verifiersLibrary(project.needs.get('verifiers') ?? '', definesIt);
    return { plan: libraryPlan(folder, project, `${library}:${found.module}`, found.file), protocol: 'ors' };
  }
  const script = Object.entries(project.scripts).find(([name]) => /^(?:.*[-_])?(?:serve|server)$/.test(name));
  if (script !== undefined) return { plan: scriptPlan(folder, project, script[1]), protocol: null };
  if (project.entryPoints.includes('inspect_ai'))
    throw sourceInvalid('The package has tasks of Inspect. Name one in pyproject.toml: [tool.palestra] serve = "inspect:package/task".');
  return null;
}

const definesEnvironment = async (file: string): Promise<boolean> => /\bload_environment\b/.test((await readText(file)) ?? '');

function libraryPlan(folder: string, project: PythonProject, spec: string, entry?: string): BuildPlan {
  const library = librarySpec(spec)!;
  const server = serverOf(libraryCommand(library, ADDRESS, 'python'), '.', null);
  // Inspect knows the tasks of a package by its name only if it imports the installed package, not the folder.
  const isInstalled = library.library === 'inspect' && !library.id.includes('.py');
  const variables = { ...server.variables, ...(isInstalled && { PYTHONSAFEPATH: '1' }) };
  return pythonPlan(folder, project, [libraryRequirement(library.library)], { ...server, variables }, entry);
}

/** Runs `module:function` as the script does. The function reads its address from `HOST` and `PORT`. */
function scriptPlan(folder: string, project: PythonProject, target: string): BuildPlan {
  const [module = '', attribute = ''] = target.split(':').map((part) => part.replace(/\[.*$/, '').trim());
  if (![module, attribute].every((part) => /^[A-Za-z_][\w.]*$/.test(part)))
    throw sourceInvalid(`pyproject.toml: project.scripts: expected module:function, not ${JSON.stringify(target)}.`);
  const code = `import sys; from ${module} import ${attribute.split('.')[0]}; sys.exit(${attribute}())`;
  const variables = { PYTHONUNBUFFERED: '1', HOST: '{host}', PORT: '{port}' };
  return pythonPlan(folder, project, [], { command: 'python', args: ['-c', code], cwd: '.', variables });
}

function pythonPlan(
  folder: string,
  project: PythonProject | null,
  packages: string[],
  server: Extract<BuildPlan, { kind: 'python' }>['server'],
  entry?: string,
): BuildPlan {
  const requirements = REQUIREMENTS.find((name) => existsSync(path.join(folder, name)));
  const install = [...(requirements === undefined ? [] : [requirements]), ...(project === null ? [] : ['pyproject.toml'])];
  return { kind: 'python', install, packages, ...(entry !== undefined && { entry }), server };
}

const serverOf = ({ command, args, env }: ServeCommand, cwd: string, manifest: OpenEnvManifest | null) => ({
  command,
  args,
  cwd,
  variables: { ...env, ...manifest?.variables },
});

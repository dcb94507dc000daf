import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { OrsBackend } from '@palestra/ors/client';
import { ManifestError } from '../../openenv-manifest.ts';
import { type Criterion, type Report, reportOf } from './criteria.ts';
import { runTarget } from './run.ts';
import { type Target, targetAt } from './target.ts';

const DOCKERFILES = ['server/Dockerfile', 'Dockerfile'];
const LOAD_DEADLINE_MS = 60_000;

/** Checks the files of a folder. For an environment of the kit, also opens its tasks. Throws `UsageError` if there is no environment. */
export async function validatePath(argument: string, signal: AbortSignal): Promise<Report> {
  const about = { target: path.resolve(argument), validation_type: 'local_environment' as const, mode: 'unknown' };
  let target: Target;
  try {
    target = await targetAt(argument);
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error;
    const broken = { ...manifestCriterion, passed: false, details: error.message };
    return reportOf({ ...about, standard_version: 'unknown', standard_profile: 'openenv-package' }, [broken]);
  }
  const version = target.manifest?.version ?? 'unknown';
  const criteria = target.kind === 'kit' ? await kitCriteria(target, signal) : openenvCriteria(target);
  const profile = target.kind === 'kit' ? 'palestra-environment' : 'openenv-package';
  return reportOf({ ...about, standard_version: version, standard_profile: profile }, criteria);
}

const manifestCriterion = { id: 'manifest', description: 'openenv.yaml exists and is valid', required: true };

function openenvCriteria({ folder, manifest, server }: Extract<Target, { kind: 'openenv' }>): Criterion[] {
  const dockerfile = DOCKERFILES.find((name) => existsSync(path.join(folder, name)));
  const { name, port } = manifest;
  const app = manifest.app ?? 'server.app:app';
  return [
    { ...manifestCriterion, passed: true, actual: { name, port, keys: Object.keys(manifest.raw) } },
    {
      id: 'server_app',
      description: 'The module of the server exists',
      required: true,
      passed: server !== null,
      expected: app,
      ...(server === null && { details: `The module of ${app} does not exist. Set app in openenv.yaml.` }),
    },
    {
      id: 'dockerfile',
      description: 'A Dockerfile exists, so that others can run the environment',
      required: true,
      passed: dockerfile !== undefined,
      expected: DOCKERFILES,
      actual: dockerfile ?? null,
    },
    {
      id: 'dependencies',
      description: 'pyproject.toml or requirements.txt lists the dependencies',
      required: false,
      passed: ['pyproject.toml', 'server/requirements.txt', 'requirements.txt'].some((file) => existsSync(path.join(folder, file))),
    },
    readmeCriterion(folder),
  ];
}

const readmeCriterion = (folder: string): Criterion => ({
  id: 'readme',
  description: 'README.md exists; it becomes the page of the environment',
  required: false,
  passed: existsSync(path.join(folder, 'README.md')),
});

/** Serves the environment and uses it like a trainer: counts every split and opens its first task. */
async function kitCriteria(target: Extract<Target, { kind: 'kit' }>, signal: AbortSignal): Promise<Criterion[]> {
  const loaded = { id: 'environment_loads', description: 'The module exports an environment that can be served', required: true };
  const readme = readmeCriterion(target.folder);
  let running;
  try {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(LOAD_DEADLINE_MS)]);
    running = await runTarget(target, { host: '127.0.0.1', port: 0, python: undefined }, bounded);
  } catch (error) {
    signal.throwIfAborted();
    return [{ ...loaded, passed: false, details: (error as Error).message }, readme];
  }
  const backend = new OrsBackend({ url: running.url });
  try {
    const names = await backend.environments(signal);
    const played = await Promise.all(
      names.map((name) => playCriteria(backend, name, AbortSignal.any([signal, AbortSignal.timeout(LOAD_DEADLINE_MS)]))),
    );
    return [{ ...loaded, passed: true, actual: names }, ...played.flat(), readme];
  } finally {
    await backend.close();
    await running.process.stop();
  }
}

async function playCriteria(backend: OrsBackend, env: string, signal: AbortSignal): Promise<Criterion[]> {
  const criteria: Criterion[] = [];
  for (const { name } of await backend.splits(env, signal)) {
    const about = { id: `${env}_split_${name}`, description: `The split ${name} has tasks, and the first task opens`, required: true };
    criteria.push(
      await openFirst(backend, env, name, signal).then(
        (actual) => ({ ...about, passed: actual.num_tasks > 0, actual }),
        (error: Error) => ({ ...about, passed: false, details: error.message }),
      ),
    );
  }
  return criteria;
}

async function openFirst(backend: OrsBackend, env: string, split: string, signal: AbortSignal) {
  const count = await backend.numTasks(env, split, signal);
  if (count === 0) return { num_tasks: 0 };
  const create = { sid: randomUUID(), env, task: { kind: 'index' as const, split, index: 0 }, toolsetName: null, secrets: {} };
  const session = backend.session(await backend.create(create, signal));
  try {
    const [prompt, { tools }] = [await session.prompt(signal), await session.taskTools(signal)];
    return { num_tasks: count, prompt_blocks: prompt.length, tools: tools.map((tool) => tool.name) };
  } finally {
    await session.delete(signal).catch(() => {});
  }
}

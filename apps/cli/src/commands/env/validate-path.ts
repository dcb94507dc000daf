import { existsSync } from 'node:fs';
import path from 'node:path';
import { isDeclared, ManifestError, type Target } from '@palestra/hosting';
import { validateModule } from '../../kit/validate-module.ts';
import { type Criterion, reportOf } from './criteria.ts';
import { runTarget } from './run.ts';
import { targetAt } from './target.ts';
import { type Level, playBackend, type PlayOptions, type Validation } from './validate-play.ts';

const DOCKERFILES = ['server/Dockerfile', 'Dockerfile'];

/** Checks the files of a folder and plays its environments. Throws `UsageError` if there is no environment. */
export async function validatePath(argument: string, level: Level, play: PlayOptions): Promise<Validation> {
  const about = { target: path.resolve(argument), validation_type: 'local_environment' as const, mode: 'unknown' };
  let target: Target;
  try {
    target = await targetAt(argument);
  } catch (error) {
    if (!(error instanceof ManifestError)) throw error;
    const broken = { ...manifestCriterion, passed: false, details: error.message };
    const report = reportOf({ ...about, standard_version: 'unknown', standard_profile: 'openenv-package' }, [broken]);
    return { report, environments: [], note: null };
  }
  const version = target.manifest?.version ?? 'unknown';
  const profile = target.kind === 'openenv' ? 'openenv-package' : 'palestra-environment';
  const finish = (criteria: Criterion[], rest: Partial<Validation> = {}): Validation => ({
    report: reportOf({ ...about, standard_version: version, standard_profile: profile }, criteria),
    environments: [],
    note: null,
    ...rest,
  });
  if (target.kind === 'kit') {
    if (level === 'static') return finish([readmeCriterion(target.folder)]);
    return playModule(target, play, finish);
  }
  const criteria = criteriaOf(target);
  const isPlayed = level === 'semantic' || (level === undefined && target.kind !== 'openenv');
  if (!isPlayed || criteria.some(({ passed, required }) => required && !passed)) return finish(criteria);
  const { url, process: child } = await runTarget(target, { host: '127.0.0.1', port: 0, python: play.python }, play.signal);
  try {
    const rewardRange = play.rewardRange ?? rewardRangeOf(target);
    return finish(criteria, {
      environments: await playBackend(url, target.kind === 'openenv' ? 'openenv' : 'remote', { ...play, rewardRange }),
    });
  } finally {
    await child.stop();
  }
}

async function playModule(
  target: Extract<Target, { kind: 'kit' }>,
  { signal, tasks, playerTasks, playerSplit, setupTimeoutMs }: PlayOptions,
  finish: (criteria: Criterion[], rest?: Partial<Validation>) => Validation,
): Promise<Validation> {
  const loads = { id: 'environment_loads', description: 'The module exports an environment that can be played', required: true };
  const readme = readmeCriterion(target.folder);
  try {
    const environments = await validateModule(target.file, { tasks, playerTasks, playerSplit, setupTimeoutMs }, signal);
    return finish([{ ...loads, passed: true, actual: environments.map(({ name }) => name) }, readme], { environments });
  } catch (error) {
    signal.throwIfAborted();
    return finish([{ ...loads, passed: false, details: (error as Error).message }, readme]);
  }
}

const criteriaOf = (target: Exclude<Target, { kind: 'kit' }>): Criterion[] => {
  if (target.kind === 'library') return [];
  return target.kind === 'openenv' ? openenvCriteria(target) : [readmeCriterion(target.folder)];
};

const manifestCriterion = { id: 'manifest', description: 'openenv.yaml exists and is valid', required: true };

function openenvCriteria({ folder, manifest, server }: Extract<Target, { kind: 'openenv' }>): Criterion[] {
  const dockerfile = DOCKERFILES.find((name) => existsSync(path.join(folder, name)));
  const { name, port } = manifest;
  const app = manifest.app ?? 'server.app:app';
  return [
    isDeclared(manifest)
      ? { ...manifestCriterion, passed: true, actual: { name, port, keys: Object.keys(manifest.raw) } }
      : { ...manifestCriterion, required: false, passed: false, details: 'There is no openenv.yaml. The server is asked instead.' },
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

/** `validation.reward.range` of openenv.yaml (OpenEnv's RFC 008). */
function rewardRangeOf({ manifest }: Target): [number, number] | null {
  const { validation } = (manifest?.raw ?? {}) as { validation?: { reward?: { range?: unknown } } };
  const range = validation?.reward?.range;
  const isRange = Array.isArray(range) && range.length === 2 && range.every((end) => typeof end === 'number');
  return isRange ? (range as [number, number]) : null;
}

import { access, constants } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { BuildPlan } from '../provider/provider.port.ts';
import { isPalestraRequirement, palestraPackage, requirementAt } from '../target/python-library.ts';
import type { BuildStep } from './process-builder.ts';

type PythonPlan = Extract<BuildPlan, { kind: 'python' }>;

/** Checks the syntax of the server, then installs the packages of a plan into `venv` of a build, by `uv` if this machine has it, else by `pip`. */
export async function installPython(
  plan: PythonPlan,
  build: string,
  { path: python, hasPip, pythonPackage }: { path: string; hasPip: boolean; pythonPackage: string | null },
  step: BuildStep,
): Promise<void> {
  const venv = path.join(build, 'venv');
  const interpreter = path.join(venv, 'bin/python');
  const uv = await programOf('uv');
  // Isolated: a module of the author does not take the place of one that the check imports.
  const isolated = ['-I', '-X', `pycache_prefix=${path.join(build, 'home')}`];
  if (plan.entry !== undefined) await step(python, [...isolated, '-m', 'py_compile', plan.entry]);
  const packages = plan.packages.map((name) => (isPalestraRequirement(name) ? requirementAt(name, palestraPackage(pythonPackage)) : name));
  // In one step, so that packages that exclude each other are an error.
  const all = [...plan.install.flatMap((name) => (name === 'pyproject.toml' ? ['.'] : ['-r', name])), ...packages];
  if (uv === null) {
    // A pip of its own takes seconds to install.
    await step(python, ['-m', 'venv', ...(hasPip ? ['--without-pip'] : []), venv]);
    const runner = hasPip ? [python, '-m', 'pip', '--python', interpreter] : [interpreter, '-m', 'pip'];
    const pip = (args: string[]) =>
      step(runner[0]!, [...runner.slice(1), 'install', '--no-input', '--disable-pip-version-check', '--progress-bar', 'off', ...args]);
    if (all.length > 0) await pip(all);
    return;
  }
  await step(uv, ['venv', '--relocatable', '--python', python, venv]);
  const locked = plan.install.includes('pyproject.toml') && existsSync(path.join(build, 'app', 'uv.lock'));
  if (locked) await step(uv, ['sync', '--frozen', '--no-dev', '--no-editable', '--active'], { VIRTUAL_ENV: venv });
  // The lock installs the folder itself.
  const rest = locked ? all.filter((one) => one !== '.') : all;
  if (rest.length > 0) await step(uv, ['pip', 'install', '--python', interpreter, ...rest]);
}

/** Scripts of packages do not run. */
export async function installNode(_build: string, step: BuildStep): Promise<void> {
  await step('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--no-update-notifier']);
}

async function programOf(name: string): Promise<string | null> {
  for (const folder of (process.env['PATH'] ?? '').split(path.delimiter)) {
    const file = path.join(folder, name);
    const isProgram = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (folder !== '' && isProgram) return file;
  }
  return null;
}

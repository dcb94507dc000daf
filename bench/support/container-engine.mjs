// A container engine for a bench: Podman behind the Docker API, with a base image of this machine's own Node.js, because a registry may be missing.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { wait } from './client.mjs';

const START_LIMIT_MS = 60_000;

/** The command of the engine; null if none is named, which fails in CI. */
export function findEngine() {
  const command = process.env.PALESTRA_TEST_CONTAINER_ENGINE ?? null;
  if (command === null && process.env.CI) throw new Error('PALESTRA_TEST_CONTAINER_ENGINE must name Podman');
  if (command === null) console.error('Left out: PALESTRA_TEST_CONTAINER_ENGINE must name Podman.');
  return command;
}

export async function startEngine(command) {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-bench-engine-'));
  const socket = path.join(folder, 'docker.sock');
  const image = nodeImage(command, folder);
  const service = spawn(command, ['system', 'service', '--time=0', `unix://${socket}`], { stdio: 'ignore', cwd: folder });
  const ended = once(service, 'exit');
  for (const deadline = Date.now() + START_LIMIT_MS; !(await answers(socket)); await wait(50)) {
    if (Date.now() > deadline) throw new Error(`${command} does not answer`);
  }
  const ask = (...args) => execFileSync(command, args, { encoding: 'utf8' }).split('\n').filter(Boolean);
  /** What belongs to services with this base image: all that was made while it listened. */
  const remove = () => {
    const ours = ask('ps', '-aq', '--filter', `ancestor=${image}`);
    const installations = new Set(
      ours.flatMap((id) => ask('inspect', '-f', '{{index .Config.Labels "palestra.dev/installation"}}', id)).filter(Boolean),
    );
    if (ours.length > 0) ask('rm', '-f', '-v', '-t', '0', ...ours);
    for (const installation of installations) {
      const filter = ['--filter', `label=palestra.dev/installation=${installation}`];
      for (const name of ask('network', 'ls', ...filter, '--format', '{{.Name}}')) ask('network', 'rm', '-f', name);
      for (const name of ask('volume', 'ls', ...filter, '--format', '{{.Name}}')) ask('volume', 'rm', '-f', name);
      for (const id of new Set(ask('images', '-q', ...filter))) ask('rmi', '-f', id);
    }
  };
  return {
    image,
    environment: { PALESTRA_HOSTING: 'docker', PALESTRA_DOCKER_HOST: `unix://${socket}`, PALESTRA_BASE_IMAGE_NODE: image },
    async stop() {
      remove();
      ask('rmi', '-f', image);
      service.kill('SIGTERM');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Also makes the engine read its storage, which the first request waits for. */
const answers = (socketPath) =>
  new Promise((resolve) => {
    get({ socketPath, path: '/info' }, (answer) => answer.resume().on('end', () => resolve(answer.statusCode === 200))).on('error', () =>
      resolve(false),
    );
  });

function nodeImage(command, folder) {
  const root = path.join(folder, 'root');
  const image = `localhost/palestra-bench/node:${process.pid}`;
  for (const name of ['tmp', 'proc', 'sys', 'dev', 'etc', 'usr/bin']) mkdirSync(path.join(root, name), { recursive: true });
  chmodSync(path.join(root, 'tmp'), 0o1777);
  const libraries = process.report.getReport().sharedObjects.filter((file) => path.isAbsolute(file) && /\.so(\.|$)/.test(file));
  for (const file of libraries) cpSync(realpathSync(file), path.join(root, file));
  cpSync(realpathSync(process.execPath), path.join(root, 'usr/bin/node'));
  const archive = execFileSync('tar', ['-C', root, '-cf', '-', '.'], { maxBuffer: 2 ** 30 });
  execFileSync(command, ['import', '--quiet', '--change', 'ENV PATH=/usr/bin', '-', image], { input: archive });
  return image;
}

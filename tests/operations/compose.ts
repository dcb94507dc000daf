import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { vi } from 'vitest';
import { engine, type Images, root } from './images.ts';

const run = promisify(execFile);
/**
 * Podman 4.3, of Debian 12, with what podman-compose expects of a newer one: it waits for healthy containers, whose checks Podman itself runs
 * only where systemd is; and containers do not require each other, which this version cannot do over more than one step. podman-compose
 * itself waits for what `depends_on` names.
 */
const PODMAN = `#!/bin/sh
case "$1 $2" in
'--version ') echo 'podman version 4.6.0'; exit ;;
'wait --condition=healthy')
  shift 2
  for name; do until ENGINE healthcheck run "$name" >/dev/null 2>&1; do sleep 0.2; done; done
  exit ;;
create*)
  for word; do shift; case "$word" in --requires=*) ;; *) set -- "$@" "$word" ;; esac; done ;;
esac
exec ENGINE "$@"
`;

/** docker-compose.yml as a project. */
export interface Compose {
  /** `docker compose ARGS`. Returns what it printed. */
  call(...args: string[]): Promise<string>;
  /** `podman ARGS`. Returns its trimmed output. */
  engine(...args: string[]): Promise<string>;
  /** Id of the container of a service. */
  container(service: string): Promise<string>;
  /** Id on this machine of the main process of a service. */
  pid(service: string): Promise<number>;
  /** Resolves when the health check of a service succeeds. */
  healthy(service: string): Promise<void>;
  /** Containers, volumes and networks that exist. */
  leftovers(): Promise<string>;
  /** Deletes the files of the test, not the containers: `down` does that. */
  remove(): Promise<void>;
}

/** The file as it is, with images of this machine, and with another port because 8080 may be taken. `env`: what `.env` would set. */
export async function compose(project: string, images: Images, port: number, env: Record<string, string>): Promise<Compose> {
  const python = process.env['PALESTRA_PYTHON_COMPOSE'];
  if (!python) throw new Error('PALESTRA_PYTHON_COMPOSE must name a Python with podman-compose; .ci/run sets it');
  const folder = await mkdtemp(path.join(tmpdir(), 'palestra-compose-'));
  const podman = path.join(folder, 'podman');
  const command = (await run('which', [engine()])).stdout.trim();
  await writeFile(podman, PODMAN.replaceAll('ENGINE', command), { mode: 0o755 });
  const override = path.join(folder, 'override.yml');
  const services = [
    ...['worker', 'migrate'].map((name) => `  ${name}: { image: ${images.palestra} }`),
    `  palestra: { image: ${images.palestra}, ports: !override ['127.0.0.1:${port}:8080'] }`,
    `  postgres: { image: ${images.postgres} }`,
    ...['s3', 's3-setup'].map((name) => `  ${name}: { image: ${images.s3} }`),
  ];
  await writeFile(override, `services:\n${services.join('\n')}\n`);
  const options = {
    cwd: root,
    maxBuffer: 2 ** 26,
    timeout: 280_000,
    env: { ...process.env, ...env, PATH: `${folder}:${process.env['PATH']}` },
  };
  const files = ['-f', path.join(root, 'docker-compose.yml'), '-f', override];
  const call = async (...args: string[]): Promise<string> => {
    const { stdout, stderr } = await run(python, ['-m', 'podman_compose', '-p', project, ...files, ...args], options);
    return stdout + stderr;
  };
  const ask = async (...args: string[]): Promise<string> => (await run(command, args, { timeout: 60_000 })).stdout.trim();
  const container = async (service: string): Promise<string> => {
    const [id] = (await ask('ps', '-aq', ...ofProject(project), '--filter', `label=com.docker.compose.service=${service}`)).split('\n');
    if (!id) throw new Error(`the service ${service} has no container`);
    return id;
  };
  return {
    call,
    container,
    engine: ask,
    pid: async (service) => Number(await ask('inspect', '--format', '{{.State.Pid}}', await container(service))),
    async healthy(service) {
      const id = await container(service);
      await vi.waitFor(() => ask('healthcheck', 'run', id), { timeout: 200_000, interval: 200 });
    },
    async leftovers() {
      const kinds = [
        ['ps', '-aq'],
        ['volume', 'ls', '-q'],
        ['network', 'ls', '-q'],
      ];
      return (await Promise.all(kinds.map((kind) => ask(...kind, ...ofProject(project))))).join('').trim();
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

const ofProject = (project: string): string[] => ['--filter', `label=io.podman.compose.project=${project}`];

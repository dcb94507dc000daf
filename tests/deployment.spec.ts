import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { CONFIG_VARIABLES, readConfig } from '../apps/api/src/platform/config.ts';

/** Dockerfile and docker-compose.yml against the product, where no container engine is at hand. Needs a build. */
const root = path.resolve(import.meta.dirname, '..');
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');

interface Service {
  image?: string;
  build?: string;
  command?: string[];
  entrypoint?: string[];
  environment: Record<string, string>;
  healthcheck?: { test: string[]; disable?: boolean };
  read_only?: boolean;
  cap_drop?: string[];
  cap_add?: string[];
  security_opt?: string[];
  privileged?: boolean;
  pids_limit?: number;
  mem_limit?: string;
  tmpfs?: string[];
  restart?: string;
  networks?: string[];
  depends_on?: Record<string, { condition: string }>;
  ports?: string[];
  volumes?: string[];
}
const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  services: Record<string, Service>;
  networks: Record<string, { internal?: boolean } | null>;
  volumes: Record<string, unknown>;
};
const services = Object.entries(compose.services);
/** Those that run our image. */
const ours = services.filter(([, { image }]) => image === 'palestra');
/** Of them, those that stay. */
const lasting = ours.filter(([name]) => name !== 'migrate');

/** Instructions, with lines that end in a backslash put together. */
const dockerfile = read('Dockerfile')
  .replaceAll('\\\n', ' ')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => ({ instruction: line.split(' ', 1)[0]!, rest: line.slice(line.indexOf(' ') + 1).trim() }));
const instructions = (name: string): string[] => dockerfile.filter(({ instruction }) => instruction === name).map(({ rest }) => rest);

const imageEnv = Object.fromEntries(
  instructions('ENV').flatMap((rest) => rest.split(/\s+/).map((pair) => pair.split('=', 2) as [string, string])),
);
/** As compose would fill in `${NAME:?message}` and `${NAME:-default}`. */
const filledIn = (text: string): string =>
  text.replaceAll(/\$\{(\w+)(?::-([^}]*))?[^}]*\}/g, (_whole, _name, value?: string) => value ?? 'or_Kq7Vw2Xz9Bn4Jd6Ys8Lm3Tc5Rf1Hg0Pk');
const environmentOf = ({ environment }: Service): Record<string, string> => ({
  ...imageEnv,
  ...Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, filledIn(value)])),
});

describe('docker-compose.yml', () => {
  test('runs the service, its worker and the migrations from one image', () => {
    expect(ours.map(([name]) => name)).toEqual(['palestra', 'worker', 'migrate']);
    for (const [name, { build }] of ours) expect(build, `${name} would be looked for in a registry`).toBe('.');
  });

  test.each(ours)('%s: every variable is one that the configuration reads, with a value that it takes', (_name, service) => {
    const unknown = Object.keys({ ...imageEnv, ...service.environment }).filter((name) => !CONFIG_VARIABLES.includes(name));
    // Of Node.js itself.
    expect(unknown).toEqual(['NODE_ENV']);
    expect(() => readConfig(environmentOf(service), (file) => file)).not.toThrow();
  });

  test('background work is for the worker, on the database and the objects of the service', () => {
    const [api, worker] = lasting.map(([, service]) => readConfig(environmentOf(service), (file) => file));
    expect(api!.jobs).toBe('off');
    expect(worker).toMatchObject({ databaseUrl: api!.databaseUrl, s3: api!.s3 });
    expect([api!.databaseUrl, api!.s3]).not.toContain(null);
    for (const address of [api!.databaseUrl!, api!.s3!.endpoint!])
      expect(Object.keys(compose.services)).toContain(new URL(address).hostname);
  });

  test.each(ours)('%s: its command is a file of the build', (_name, { command = JSON.parse(instructions('CMD')[0]!) as string[] }) => {
    expect(command[0]).toBe('node');
    const file = command.at(-1)!;
    expect(file).toMatch(/^apps\/\w+\/dist\/\w+\.js$/);
    expect(existsSync(path.join(root, file)), `${file} is missing: npm run build`).toBe(true);
  });

  test('the image starts the service as `npm start` does', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: { start: string } };
    expect((JSON.parse(instructions('CMD')[0]!) as string[]).join(' ')).toBe(scripts.start);
  });

  test('health checks ask the ports at which the services listen', () => {
    const portIn = (text: string): number => Number(/:(\d+)\/health\/ready/.exec(text)?.[1]);
    const [[, api], [, worker]] = lasting as [[string, Service], [string, Service]];
    const apiConfig = readConfig(environmentOf(api), (file) => file);
    expect(portIn(instructions('HEALTHCHECK')[0]!)).toBe(apiConfig.port);
    expect(apiConfig.host).toBe('0.0.0.0');
    expect(api.ports!.every((port) => port.startsWith('127.0.0.1:') && port.endsWith(`:${apiConfig.port}`))).toBe(true);
    expect(portIn(worker.healthcheck!.test.join(' '))).toBe(readConfig(environmentOf(worker), (file) => file).workerPort);
    const { healthcheck, environment } = compose.services.s3!;
    expect(healthcheck!.test.at(-1)).toBe(`http://127.0.0.1${environment.VGW_PORT}${environment.VGW_HEALTH}`);
    expect(new URL(apiConfig.s3!.endpoint!).port).toBe(environment.VGW_PORT!.slice(1));
  });

  test('who waits for a healthy service waits for one that has a health check', () => {
    const waits = services.flatMap(([, { depends_on = {} }]) => Object.entries(depends_on));
    expect(waits.length).toBeGreaterThan(2);
    for (const [name, { condition }] of waits) {
      if (condition === 'service_completed_successfully') {
        expect(compose.services[name]!.restart, `${name} has to end`).toBe('no');
        continue;
      }
      expect(condition).toBe('service_healthy');
      const { healthcheck, image } = compose.services[name]!;
      expect(healthcheck !== undefined || (image === 'palestra' && instructions('HEALTHCHECK').length === 1), name).toBe(true);
    }
  });

  test('volumes are declared', () => {
    const used = services.flatMap(([, { volumes = [] }]) => volumes.map((volume) => volume.split(':')[0]!));
    expect(used.toSorted()).toEqual(Object.keys(compose.volumes).toSorted());
  });

  test('no secret has a value in the file', () => {
    const secrets = services.flatMap(([, { environment }]) =>
      Object.entries(environment).filter(([name]) => /KEY|PASSWORD|SECRET/.test(name)),
    );
    expect(secrets.length).toBeGreaterThan(4);
    for (const [name, value] of secrets) expect(value, name).toMatch(/^\$\{\w+:\?[^}]+\}$/);
  });

  test.each(services)('L7: %s has a read-only root, no capability that it does not need, and limits', (name, service) => {
    expect(service.privileged).toBeUndefined();
    expect(service.read_only).toBe(true);
    expect(service.cap_drop).toEqual(['ALL']);
    // The entry point of PostgreSQL's image owns its volume and becomes another user.
    expect(service.cap_add ?? []).toEqual(name === 'postgres' ? ['CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'SETGID', 'SETUID'] : []);
    expect(service.security_opt).toContain('no-new-privileges:true');
    expect(service.security_opt).not.toContain('seccomp=unconfined');
    expect(service.pids_limit).toBeGreaterThan(0);
    expect(service.mem_limit).toMatch(/^\d+[mg]$/);
    for (const volume of service.volumes ?? []) expect(volume, 'a folder of the host').not.toMatch(/^[./~]/);
  });

  test('L7: the seccomp profile is there and forbids by default', () => {
    const file = lasting[0]![1].security_opt!.find((option) => option.startsWith('seccomp='))!.slice('seccomp='.length);
    const profile = JSON.parse(read(file)) as { defaultAction: string; syscalls: { names: string[]; action: string; includes?: object }[] };
    expect(profile.defaultAction).toBe('SCMP_ACT_ERRNO');
    const always = profile.syscalls.filter(
      ({ action, includes }) => action === 'SCMP_ACT_ALLOW' && Object.keys(includes ?? {}).length === 0,
    );
    const names = always.flatMap((rule) => rule.names);
    expect(names).toEqual(expect.arrayContaining(['clone', 'unshare', 'mount', 'pivot_root']));
    for (const name of ['bpf', 'init_module', 'kexec_load', 'open_by_handle_at', 'perf_event_open', 'userfaultfd'])
      expect(names).not.toContain(name);
  });

  test('L7: database and objects are not on the network that leads outside, and only the service is', () => {
    expect(compose.networks.inside).toEqual({ internal: true });
    const outside = services.filter(([, { networks = [] }]) => networks.some((network) => compose.networks[network]?.internal !== true));
    expect(outside.map(([name]) => name)).toEqual(['palestra']);
    for (const [name, { networks }] of services) expect(networks, name).toContain('inside');
    expect(services.filter(([, { ports }]) => ports !== undefined).map(([name]) => name)).toEqual(['palestra']);
  });

  test('M11: only what ends before the service starts knows the owner of the database and the root key of the objects', () => {
    const holders = (secret: string) =>
      services.filter(([, { environment }]) => JSON.stringify(environment).includes(`\${${secret}:`)).map(([name]) => name);
    expect(holders('POSTGRES_PASSWORD')).toEqual(['migrate', 'postgres']);
    expect(holders('S3_ROOT_SECRET_ACCESS_KEY')).toEqual(['s3', 's3-setup']);
    const [api, migrate] = [ours[0]!, ours[2]!].map(([, service]) => readConfig(environmentOf(service), (file) => file));
    expect(api!.databaseMigrationUrl).toBeNull();
    expect(migrate!.databaseUrl).toBe(api!.databaseUrl);
    expect(new URL(migrate!.databaseMigrationUrl!).username).toBe(compose.services.postgres!.environment.POSTGRES_USER);
    expect(new URL(api!.databaseUrl!).username).not.toBe(compose.services.postgres!.environment.POSTGRES_USER);
  });
});

describe('Dockerfile', () => {
  test('L7: both stages are one image of an exact version, by its digest', () => {
    expect(new Set(instructions('FROM').map((rest) => rest.split(' ')[0]))).toEqual(new Set(['${NODE_IMAGE}']));
    expect(instructions('ARG')).toEqual([expect.stringMatching(/^NODE_IMAGE=node:\d+\.\d+\.\d+-[a-z-]+@sha256:[0-9a-f]{64}$/)]);
    const images = services.flatMap(([, { image }]) => image ?? []).filter((image) => image !== 'palestra');
    for (const image of images) expect(image).toMatch(/:v?\d+\.\d+(\.\d+)?(-[a-z]+)?@sha256:[0-9a-f]{64}$/);
  });

  test('L7: the image has compiled files and production packages, belongs to root and runs as another user', () => {
    const last = dockerfile.slice(dockerfile.findLastIndex(({ instruction }) => instruction === 'FROM'));
    const copied = last.filter(({ instruction }) => instruction === 'COPY').map(({ rest }) => rest);
    expect(copied).toEqual(['--from=build /runtime /app']);
    expect(last.find(({ instruction }) => instruction === 'USER')?.rest).toBe('node');
    expect(last.find(({ rest }) => rest.includes('apt-get'))?.rest).toContain('bubblewrap');
    const runtime = instructions('RUN').find((rest) => rest.includes('/runtime'))!;
    expect(runtime).not.toMatch(/\bsrc\b|tests/);
    expect(instructions('RUN').join(' ')).toContain('npm prune --omit=dev');
  });

  test('copies what is there, and what .dockerignore lets through', () => {
    const ignored = read('.dockerignore').split('\n').filter(Boolean);
    const sources = instructions('COPY')
      .filter((rest) => !rest.startsWith('--from='))
      .flatMap((rest) => rest.split(/\s+/).slice(0, -1));
    expect(sources.length).toBeGreaterThan(0);
    for (const source of sources) {
      expect(existsSync(path.join(root, source)), source).toBe(true);
      expect(ignored).not.toContain(source);
    }
    // Build output of the host would make the incremental build believe that it is done; dependencies are of another platform.
    expect(ignored).toEqual(expect.arrayContaining(['**/dist', '**/node_modules']));
    // What docker-compose.yml has its passwords from would be in every layer of the image.
    expect(ignored).toContain('.env*');
  });

  test('copies from a stage that exists, and runs scripts that exist', () => {
    const stages = instructions('FROM').flatMap((rest) => / AS (\w+)$/.exec(rest)?.[1] ?? []);
    const from = instructions('COPY').flatMap((rest) => /^--from=(\w+)/.exec(rest)?.[1] ?? []);
    expect(from.length).toBeGreaterThan(0);
    for (const stage of from) expect(stages).toContain(stage);
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const run = instructions('RUN').flatMap((rest) => [...rest.matchAll(/npm run (\S+)/g)].map(([, script]) => script!));
    expect(run.length).toBeGreaterThan(0);
    for (const script of run) expect(scripts).toHaveProperty(script);
  });
});

describe('deploy/helm/palestra', () => {
  const folder = path.join(root, 'deploy/helm/palestra/templates');
  const templates = readdirSync(folder).map((file) => readFileSync(path.join(folder, file), 'utf8'));

  test('sets only variables that the configuration reads', () => {
    const names = templates.flatMap((text) =>
      [...text.matchAll(/\bname: ([A-Z][A-Z0-9_]+)|secretVariable" \(list \. "([A-Z0-9_]+)"/g)].map((match) => match[1] ?? match[2]!),
    );
    expect(names).toContain('DATABASE_URL');
    // Of Kubernetes, for the address of a replica.
    expect([...new Set(names)].filter((name) => name !== 'POD_IP' && !CONFIG_VARIABLES.includes(name))).toEqual([]);
  });

  test('starts files of the build as the image does', () => {
    const commands = templates.flatMap((text) =>
      [...text.matchAll(/command: \[(node, .*main\.js|node, .*migrate\.js)\]/g)].map(([, command]) => command!),
    );
    expect(commands).toHaveLength(3);
    const { scripts } = JSON.parse(read('package.json')) as { scripts: { start: string } };
    expect(commands.map((command) => command.replaceAll(',', ''))).toContain(scripts.start);
    for (const command of commands) expect(existsSync(path.join(root, command.split(', ').at(-1)!))).toBe(true);
  });
});

test('the chart gives the rights that docs/hosting.md names, and no others', () => {
  const rulesIn = (file: string): unknown[] => [...read(file).matchAll(/^rules:\n(?: .*\n)+/gm)].map(([text]) => parse(text) as unknown);
  const chart = 'deploy/helm/palestra/templates';
  const rules = ['hosting', 'sandboxes', 'agent-sandbox'].flatMap((name) => rulesIn(`${chart}/${name}.yaml`));
  expect(rules).toEqual(rulesIn('docs/hosting.md'));
});

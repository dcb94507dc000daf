import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@palestra/hosting';
import type { TestEngine } from '../../integration/hosting/docker-engine.world.ts';
import { BRIDGE_ADDRESS } from './api-server-for-pods.ts';
import { buildkitPrograms } from './buildkit-image.ts';

const START_MS = 20_000;
const USER = 'palestra';
export const REGISTRY_PASSWORD = 'push-password';
/** `htpasswd -B` of it. */
const HASH = '$2b$04$LtZMxYWkDdP8X1gXMyBk.Ov2jufp74HH.iWaBaF870f1zw0zRWO.e';

/** A registry of images that only its user can read and write. Pods and this machine reach it, without TLS. */
export class TestRegistry {
  readonly #engine: TestEngine;
  readonly #folder: string;
  readonly #process: ChildProcess;
  /** `HOST:PORT` */
  readonly host: string;

  private constructor(engine: TestEngine, folder: string, process: ChildProcess, host: string) {
    [this.#engine, this.#folder, this.#process, this.host] = [engine, folder, process, host];
  }

  static async start(engine: TestEngine): Promise<TestRegistry> {
    // The address of the bridge exists while a container runs.
    const label = `palestra.dev/installation=${engine.installation}`;
    engine.ask('run', '-d', '--label', label, '--entrypoint', 'node', engine.image, '-e', 'setInterval(() => {}, 1e6)');
    const folder = mkdtempSync(path.join(tmpdir(), 'palestra-registry-'));
    const host = `${BRIDGE_ADDRESS}:${await freePort()}`;
    writeFileSync(path.join(folder, 'htpasswd'), `${USER}:${HASH}\n`);
    const config = {
      version: '0.1',
      log: { level: 'error', accesslog: { disabled: true } },
      storage: { filesystem: { rootdirectory: path.join(folder, 'images') } },
      http: { addr: host, secret: 'test' },
      auth: { htpasswd: { realm: 'test', path: path.join(folder, 'htpasswd') } },
    };
    // JSON is YAML.
    writeFileSync(path.join(folder, 'config.yml'), JSON.stringify(config));
    const program = path.join(buildkitPrograms!, 'registry');
    const log = openSync(path.join(folder, 'log'), 'w');
    const process = spawn(program, ['serve', path.join(folder, 'config.yml')], { stdio: ['ignore', log, log] });
    closeSync(log);
    const registry = new TestRegistry(engine, folder, process, host);
    const deadline = Date.now() + START_MS;
    while (!(await registry.request('/v2/').catch(() => null))?.ok) {
      if (Date.now() > deadline) throw new Error(`the registry does not answer: ${readFileSync(path.join(folder, 'log'), 'utf8')}`);
      await sleep(50);
    }
    return registry;
  }

  /** A Secret of the type `kubernetes.io/dockerconfigjson`. */
  secret(name: string, password = REGISTRY_PASSWORD): object {
    const auths = { [this.host]: { auth: Buffer.from(`${USER}:${password}`).toString('base64') } };
    const data = { '.dockerconfigjson': Buffer.from(JSON.stringify({ auths })).toString('base64') };
    return { metadata: { name }, type: 'kubernetes.io/dockerconfigjson', data };
  }

  request(at: string, headers: Record<string, string> = {}): Promise<Response> {
    const authorization = `Basic ${Buffer.from(`${USER}:${REGISTRY_PASSWORD}`).toString('base64')}`;
    return fetch(`http://${this.host}${at}`, { headers: { authorization, ...headers }, signal: AbortSignal.timeout(10_000) });
  }

  /** Puts an image of the engine here; its new name. */
  push(image: string, name: string): string {
    const target = `${this.host}/${name}`;
    this.#engine.ask('push', '-q', '--tls-verify=false', '--creds', `${USER}:${REGISTRY_PASSWORD}`, image, `docker://${target}`);
    return target;
  }

  /** Also removes what the engine pulled from it. */
  async stop(): Promise<void> {
    const pulled = this.#engine.lines('images', '-q', '--filter', `reference=${this.host}/*/*`);
    for (const id of new Set(pulled)) this.#engine.ask('rmi', '-f', id);
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

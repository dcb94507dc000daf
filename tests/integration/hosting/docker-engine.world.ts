import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DockerProvider, type DockerProviderOptions } from '@palestra/hosting';
import { newUuid } from '@palestra/kit';
import { makeNodeImage } from '../../support/node-image.ts';

/** A container engine: `.ci/run` names it. Under CI there must be one. */
export const engineCommand = process.env['PALESTRA_TEST_CONTAINER_ENGINE'];
if (engineCommand === undefined && process.env['CI']) {
  throw new Error('PALESTRA_TEST_CONTAINER_ENGINE must name a container engine (podman, see .ci/run); it is not set');
}

const START_MS = 30_000;
/** What Podman says of any image while another file of tests removes one. */
const IMAGE_REMOVED = /retrieving parent of image|reading image "[0-9a-f]+" as image/;

/** Podman behind the Docker API. It can be killed and started again; its containers go on meanwhile. */
export class TestEngine {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'palestra-test-engine-'));
  readonly socket = path.join(this.folder, 'docker.sock');
  /** Has Node.js at /usr/bin/node, and nothing else. */
  readonly image = makeNodeImage(engineCommand!);
  /** Of this run; nothing with another one is touched. */
  readonly installation = `test-${newUuid()}`;
  #process: ChildProcess | null = null;

  static async start(): Promise<TestEngine> {
    const engine = new TestEngine();
    await engine.run();
    return engine;
  }

  async run(): Promise<void> {
    rmSync(this.socket, { force: true });
    this.#process = spawn(engineCommand!, ['system', 'service', '--time=0', `unix://${this.socket}`], {
      stdio: 'ignore',
      // Containers that run out of memory leave a file here.
      cwd: this.folder,
    });
    const deadline = Date.now() + START_MS;
    while (!(await connects(this.socket))) {
      if (Date.now() > deadline) throw new Error(`${engineCommand} does not listen`);
      await sleep(20);
    }
  }

  /** Without warning. */
  async kill(): Promise<void> {
    const ended = once(this.#process!, 'exit');
    this.#process!.kill('SIGKILL');
    await ended;
    this.#process = null;
  }

  provider(options: Partial<DockerProviderOptions> = {}): DockerProvider {
    return new DockerProvider({
      installation: this.installation,
      host: `unix://${this.socket}`,
      baseImages: { node: this.image, python: this.image },
      ...options,
    });
  }

  /** By the command of the engine. */
  ask(...args: string[]): string {
    for (const deadline = Date.now() + START_MS; ;) {
      try {
        return execFileSync(engineCommand!, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
      } catch (error) {
        if (Date.now() > deadline || !IMAGE_REMOVED.test((error as Error).message)) throw error;
      }
    }
  }

  lines(...args: string[]): string[] {
    return this.ask(...args)
      .split('\n')
      .filter(Boolean);
  }

  /** Of this machine on the network of gateways, while a gateway runs. */
  hostAddress(): string {
    return this.ask('network', 'inspect', '-f', '{{(index .Subnets 0).Gateway}}', `palestra-${this.installation}-gateways`);
  }

  /** Names of what belongs to instances of this run. */
  leftovers(): string[] {
    const filter = ['--filter', `label=palestra.dev/installation=${this.installation}`];
    return [
      ...this.lines('ps', '-a', ...filter, '--format', '{{.Names}}'),
      ...this.lines('network', 'ls', ...filter, '--format', '{{.Name}}').filter((name) => !name.endsWith('-gateways')),
      ...this.lines('volume', 'ls', ...filter, '--format', '{{.Name}}'),
    ];
  }

  async close(): Promise<void> {
    const filter = ['--filter', `label=palestra.dev/installation=${this.installation}`];
    for (const id of this.lines('ps', '-aq', ...filter)) this.ask('rm', '-f', '-v', '-t', '0', id);
    for (const name of this.lines('network', 'ls', ...filter, '--format', '{{.Name}}')) this.ask('network', 'rm', '-f', name);
    for (const name of this.lines('volume', 'ls', ...filter, '--format', '{{.Name}}')) this.ask('volume', 'rm', '-f', name);
    for (const id of new Set(this.lines('images', '-aq', ...filter))) this.ask('rmi', '-f', id);
    this.ask('rmi', '-f', this.image);
    if (this.#process) await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function connects(socket: string): Promise<boolean> {
  return new Promise((resolve) => {
    const connection = createConnection(socket);
    connection.on('connect', () => resolve(true)).on('error', () => resolve(false));
    connection.on('connect', () => connection.destroy());
  });
}

import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { UsageError } from '../server-settings.ts';
import { type ContainerEngine, EngineError } from './engine.ts';

/** Every container that was started here has it, with the environment's name. */
export const LABEL = 'palestra.environment';
const POLL_MS = 250;
const ANSWER_MS = 2_000;
/** Until a server that does not end by itself is killed. */
const STOP_SECONDS = 3;
const LOG_LINES = 20;
/** Of a process that was killed: 128 + SIGKILL. */
const KILLED = 137;

export interface ContainerOptions {
  image: string;
  /** Of the environment: what the container is called and labelled after. */
  environment: string;
  host: string;
  port: number;
  /** What its server listens on inside. */
  containerPort: number;
  /** `NAME=value`, or `NAME`: as it is set here. */
  env: readonly string[];
  /** As the engine takes them: `512m`, `1.5`. */
  memory?: string;
  cpus?: string;
  /** It outlives us, and is started again by the engine. */
  detach: boolean;
}

interface State {
  running: boolean;
  exitCode: number;
  restarts: number;
}

export class Container {
  readonly url: string;
  readonly name: string;
  readonly #engine: ContainerEngine;
  readonly #options: ContainerOptions;

  private constructor(engine: ContainerEngine, name: string, options: ContainerOptions) {
    this.#engine = engine;
    this.#options = options;
    this.name = name;
    this.url = `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${options.port}`;
  }

  /** Of an image that the engine has. Nothing is left behind when it cannot be started. */
  static async start(engine: ContainerEngine, options: ContainerOptions): Promise<Container> {
    const { image, environment, host, port } = options;
    if (await isTaken(host, port)) throw portTaken(host, port);
    const name = `palestra-${environment.replaceAll(/[^\w.-]+/g, '-')}-${Date.now()}-${process.pid}`;
    const container = new Container(engine, name, options);
    try {
      await engine.run(['run', '-d', '--name', name, ...container.#arguments(), image]);
      return container;
    } catch (error) {
      // It may have been made, and only not started.
      await container.remove();
      if (!(error instanceof EngineError)) throw error;
      if (/already (in use|allocated)/i.test(error.lastLine)) throw portTaken(host, port);
      throw new Error(`${engine.command} could not run ${image}: ${error.lastLine}`);
    }
  }

  #arguments(): string[] {
    const { environment, host, port, containerPort, env, memory, cpus, detach } = this.#options;
    return [
      '--label',
      `${LABEL}=${environment}`,
      '-p',
      `${host.includes(':') ? `[${host}]` : host}:${port}:${containerPort}`,
      ...env.flatMap((variable) => ['-e', variable]),
      ...(memory === undefined ? [] : ['--memory', memory]),
      ...(cpus === undefined ? [] : ['--cpus', cpus]),
      ...(detach ? ['--restart', 'unless-stopped'] : []),
    ];
  }

  /** Rejects, with its last log lines, when it ends or does not answer in time. */
  async whenHealthy(timeoutMs: number, signal: AbortSignal): Promise<void> {
    for (const deadline = Date.now() + timeoutMs; Date.now() < deadline;) {
      signal.throwIfAborted();
      const answer = await fetch(`${this.url}/health`, { signal: AbortSignal.timeout(ANSWER_MS) }).catch(() => null);
      await answer?.body?.cancel();
      // Not every server has the route.
      if (answer?.ok || answer?.status === 404) return;
      const state = await this.#state();
      // One that the engine starts again and again is never seen for long without running.
      if (state === null || !state.running || state.restarts > 0) throw new Error(await this.#ending(state));
      await sleep(POLL_MS, undefined, { signal }).catch(() => {});
    }
    signal.throwIfAborted();
    const { image, containerPort } = this.#options;
    const waited = `the container of ${image} did not answer /health on its port ${containerPort} within ${timeoutMs / 1000} s`;
    throw new Error(`${waited} (another port: --container-port, more time: --start-timeout)${await this.#lastWords()}`);
  }

  async isRunning(): Promise<boolean> {
    return (await this.#state())?.running ?? false;
  }

  /** How it ended, and its last log lines. */
  async ending(): Promise<string> {
    return this.#ending(await this.#state());
  }

  /** After it ended by itself; on the port that it had. */
  async restart(): Promise<void> {
    if ((await this.#state()) === null) throw new Error(`the container ${this.name} was removed`);
    await this.#engine.run(['start', this.name]);
  }

  /** With its anonymous volumes. Says so when it cannot be done, for the user to do it. */
  async remove(): Promise<void> {
    const engine = this.#engine;
    await engine.ask(['stop', '-t', String(STOP_SECONDS), this.name]);
    const refused = await engine.run(['rm', '-f', '-v', this.name]).then(
      () => null,
      (error: Error) => error,
    );
    if (refused !== null && (await this.#state()) !== null)
      process.stderr.write(`the container could not be removed (${refused.message}); do so with: ${engine.command} rm -f ${this.name}\n`);
  }

  /** null: there is no such container. */
  async #state(): Promise<State | null> {
    const format = '{{.State.Running}} {{.State.ExitCode}} {{.RestartCount}}';
    const text = await this.#engine.ask(['container', 'inspect', '-f', format, this.name]);
    if (text === null) return null;
    const [running, exitCode, restarts] = text.split(' ');
    return { running: running === 'true', exitCode: Number(exitCode), restarts: Number(restarts) };
  }

  async #ending(state: State | null): Promise<string> {
    const what = `the container of ${this.#options.image}`;
    if (state === null) return `${what} was removed`;
    const killed = state.exitCode === KILLED ? ' (killed; perhaps it needs more memory than it may have)' : '';
    const again = state.restarts > 0 && state.running;
    return `${what} ${again ? 'ended and was started again' : `ended with status ${state.exitCode}${killed}`}${await this.#lastWords()}`;
  }

  async #lastWords(): Promise<string> {
    const said = await this.#engine.run(['logs', '--tail', String(LOG_LINES), this.name]).catch(() => ({ stdout: '', stderr: '' }));
    const text = `${said.stdout}${said.stderr}`.trim();
    return text === '' ? '; it has printed nothing' : `; it said last:\n${text}`;
  }
}

const portTaken = (host: string, port: number) =>
  new UsageError(`port ${port} of ${host} is taken; choose another one with --port, or leave the choice to us with --port 0`);

/** Engines tell it in many ways, and some only after the container is there. */
async function isTaken(host: string, port: number): Promise<boolean> {
  const server = createServer().listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
  }
  server.close();
  await once(server, 'close');
  return false;
}

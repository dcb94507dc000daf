import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { UsageError } from '../server-settings.ts';
import { type ContainerEngine, EngineError } from './engine.ts';

/** The label of every container that this command starts; its value is the name of the environment. */
export const LABEL = 'palestra.environment';
const POLL_MS = 250;
const ANSWER_MS = 2_000;
/** How long the engine waits before it kills a server. */
const STOP_SECONDS = 3;
const LOG_LINES = 20;
/** Exit status of a killed process: 128 + SIGKILL. */
const KILLED = 137;

export interface ContainerOptions {
  image: string;
  /** Name of the environment, for the name and label of the container. */
  environment: string;
  host: string;
  port: number;
  /** The port of the server in the container. */
  containerPort: number;
  /** `NAME=value`, or `NAME` for the current value. */
  env: readonly string[];
  /** Limits in the syntax of the engine: `512m`, `1.5`. */
  memory?: string;
  cpus?: string;
  /** The container outlives this command, and the engine restarts it. */
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

  /** Starts a container of a local image. Removes the container if it cannot be started. */
  static async start(engine: ContainerEngine, options: ContainerOptions): Promise<Container> {
    const { image, environment, host, port } = options;
    if (await isTaken(host, port)) throw portTaken(host, port);
    const name = `palestra-${environment.replaceAll(/[^\w.-]+/g, '-')}-${Date.now()}-${process.pid}`;
    const container = new Container(engine, name, options);
    try {
      await engine.run(['run', '-d', '--name', name, ...container.#arguments(), image]);
      return container;
    } catch (error) {
      // The engine may have created the container without starting it.
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

  /** Waits for a response. Rejects with the last log lines if the container ends or does not respond in time. */
  async whenHealthy(timeoutMs: number, signal: AbortSignal): Promise<void> {
    for (const deadline = Date.now() + timeoutMs; Date.now() < deadline;) {
      signal.throwIfAborted();
      const answer = await fetch(`${this.url}/health`, { signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]) }).catch(
        () => null,
      );
      await answer?.body?.cancel();
      // A 404 is a response, too: not every server has the route.
      if (answer?.ok || answer?.status === 404) return;
      const state = await this.#state();
      // A container that the engine keeps restarting looks running most of the time.
      if (state === null || !state.running || state.restarts > 0) throw new Error(await this.#ending(state));
      await sleep(POLL_MS, undefined, { signal }).catch(() => {});
    }
    signal.throwIfAborted();
    const { image, containerPort } = this.#options;
    const waited = `The container of ${image} did not answer /health on its port ${containerPort} within ${timeoutMs / 1000} s`;
    throw new Error(`${waited} (change the port with --container-port, the time with --start-timeout)${await this.#lastLogLines()}`);
  }

  async isRunning(): Promise<boolean> {
    return (await this.#state())?.running ?? false;
  }

  /** How the container ended, with its last log lines. */
  async ending(): Promise<string> {
    return this.#ending(await this.#state());
  }

  /** Restarts an ended container on the same port. */
  async restart(): Promise<void> {
    if ((await this.#state()) === null) throw new Error(`The container ${this.name} was removed.`);
    await this.#engine.run(['start', this.name]);
  }

  /** Removes the container with its anonymous volumes. Prints the command for the user if that fails. */
  async remove(): Promise<void> {
    const engine = this.#engine;
    await engine.query(['stop', '-t', String(STOP_SECONDS), this.name]);
    const refused = await engine.run(['rm', '-f', '-v', this.name]).then(
      () => null,
      (error: Error) => error,
    );
    if (refused !== null && (await this.#state()) !== null)
      process.stderr.write(
        `The container could not be removed (${refused.message}). Remove it with: ${engine.command} rm -f ${this.name}\n`,
      );
  }

  /** Null if the container does not exist. */
  async #state(): Promise<State | null> {
    const format = '{{.State.Running}} {{.State.ExitCode}} {{.RestartCount}}';
    const text = await this.#engine.query(['container', 'inspect', '-f', format, this.name]);
    if (text === null) return null;
    const [running, exitCode, restarts] = text.split(' ');
    return { running: running === 'true', exitCode: Number(exitCode), restarts: Number(restarts) };
  }

  async #ending(state: State | null): Promise<string> {
    const what = `The container of ${this.#options.image}`;
    if (state === null) return `${what} was removed`;
    const killed = state.exitCode === KILLED ? ' (killed; its memory limit may be too low)' : '';
    const again = state.restarts > 0 && state.running;
    return `${what} ${again ? 'ended and was restarted' : `ended with status ${state.exitCode}${killed}`}${await this.#lastLogLines()}`;
  }

  async #lastLogLines(): Promise<string> {
    const logs = await this.#engine.run(['logs', '--tail', String(LOG_LINES), this.name]).catch(() => ({ stdout: '', stderr: '' }));
    const text = `${logs.stdout}${logs.stderr}`.trim();
    return text === '' ? '; it printed nothing' : `; last log lines:\n${text}`;
  }
}

const portTaken = (host: string, port: number) =>
  new UsageError(`Port ${port} of ${host} is in use. Choose another one with --port, or any free one with --port 0.`);

/** Engines report a used port in different ways, and some only after they created the container. */
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

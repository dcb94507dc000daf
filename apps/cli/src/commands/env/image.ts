import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { UsageError } from '../../settings.ts';

const run = promisify(execFile);
const ENGINES = ['docker', 'podman'] as const;
/** Where the servers of OpenEnv images listen. */
const CONTAINER_PORT = 8000;
const HEALTHY_DEADLINE_MS = 120_000;
const POLL_MS = 250;

/** `[registry/]owner/name[:tag][@digest]`, or `name:tag`: what a bare word of the command line may be besides a path. */
const REFERENCE = /^(?:[\w.-]+(?::\d+)?\/)*[\w.-]+(?:\/[\w.-]+|:[\w.-]+)(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$/;
export const looksLikeImage = (text: string): boolean => REFERENCE.test(text) && !/^\.{0,2}\//.test(text) && !/^https?:/i.test(text);

export interface ContainerOptions {
  image: string;
  /** On the loopback interface. */
  port: number;
  name: string;
  env: Record<string, string>;
  /** It outlives us, and is started again by the engine. */
  detach: boolean;
}

export class Container {
  readonly url: string;
  readonly #engine: string;
  readonly id: string;

  private constructor(engine: string, id: string, port: number) {
    this.#engine = engine;
    this.id = id;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** Throws `UsageError` without a container engine. */
  static async start({ image, port, name, env, detach }: ContainerOptions): Promise<Container> {
    const engine = await findEngine(image);
    const variables = Object.entries(env).flatMap(([key, value]) => ['-e', `${key}=${value}`]);
    const restart = detach ? ['--restart', 'unless-stopped'] : [];
    const args = ['run', '-d', '--name', name, '-p', `127.0.0.1:${port}:${CONTAINER_PORT}`, ...restart, ...variables, image];
    const { stdout } = await run(engine, args).catch((error: unknown) => {
      throw new Error(`${engine} could not run ${image}: ${lastLine((error as { stderr?: string }).stderr ?? String(error))}`);
    });
    return new Container(engine, stdout.trim().split('\n').at(-1)!, port);
  }

  /** Rejects when it ends, or does not answer in time. */
  async whenHealthy(signal: AbortSignal): Promise<void> {
    for (const deadline = Date.now() + HEALTHY_DEADLINE_MS; Date.now() < deadline;) {
      signal.throwIfAborted();
      const answer = await fetch(`${this.url}/health`, { signal: AbortSignal.timeout(2_000) }).catch(() => null);
      if (answer?.ok) return;
      if (!(await this.isRunning())) throw new Error(`the container ended:\n${await this.logs()}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
    throw new Error(
      `the container did not answer /health on port ${CONTAINER_PORT} within ${HEALTHY_DEADLINE_MS / 1000} s:\n${await this.logs()}`,
    );
  }

  async isRunning(): Promise<boolean> {
    const { stdout } = await run(this.#engine, ['inspect', '-f', '{{.State.Running}}', this.id]).catch(() => ({ stdout: 'false' }));
    return stdout.trim() === 'true';
  }

  async restart(): Promise<void> {
    await run(this.#engine, ['start', this.id]);
  }

  async remove(): Promise<void> {
    await run(this.#engine, ['stop', this.id]).catch(() => {});
    await run(this.#engine, ['rm', '-f', this.id]).catch(() => {});
  }

  async logs(): Promise<string> {
    const { stdout, stderr } = await run(this.#engine, ['logs', '--tail', '20', this.id]).catch(() => ({ stdout: '', stderr: '' }));
    return `${stdout}${stderr}`.trim();
  }
}

/** The first engine whose daemon answers. */
async function findEngine(image: string): Promise<string> {
  const reasons: string[] = [];
  for (const engine of ENGINES) {
    try {
      await run(engine, ['version'], { timeout: 20_000 });
      return engine;
    } catch (error) {
      const { code, stderr = '' } = error as { code?: unknown; stderr?: string };
      reasons.push(code === 'ENOENT' ? `${engine} is not installed` : `${engine} does not answer (${lastLine(stderr)})`);
    }
  }
  throw new UsageError(
    `${image} is an image, and no container engine runs it here: ${reasons.join('; ')}. Start Docker or Podman, or run the image elsewhere and push its address: palestra env push --url http://HOST:8000`,
  );
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1) ?? '';

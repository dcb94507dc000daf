import { HostingError, type SandboxNetwork, type SandboxProvider } from '@palestra/hosting';
import { type JsonObject, PalestraError, type ToolsAnswer } from '@palestra/protocol';
import type { BackendCall, BackendSession, ToolCallResult } from '@palestra/session';
import type { z } from 'zod';
import { sandboxError, withSandboxErrors } from './sandbox-errors.ts';
import { SandboxFiles } from './sandbox-files.ts';
import { execOf, isCutShort, MOST_OUTPUT_BYTES, runSchema, runText } from './sandbox-run.ts';

/** The only tool: a command. `/run` calls it. */
export const RUN_TOOL = 'run';
/** Commands of one sandbox that run at the same time: the output of each is in the memory of this process. */
export const MOST_COMMANDS = 16;

export interface SandboxSessionOptions {
  /** Of this process; rejects when it has none. */
  provider: () => Promise<SandboxProvider>;
  id: string;
  hasPolicy: boolean;
  /** Called when the sandbox is gone. */
  onRemoved: () => Promise<void>;
}

/** An open sandbox as a session. Any process of the service can serve it. */
export class SandboxSession implements BackendSession {
  readonly #options: SandboxSessionOptions;
  #running = 0;

  constructor(options: SandboxSessionOptions) {
    this.#options = options;
  }

  /** It was ready when it was created. */
  async ready(): Promise<void> {}

  async prompt(): Promise<never> {
    throw notAnEpisode();
  }

  async messages(): Promise<never> {
    throw notAnEpisode();
  }

  async scoreGroup(): Promise<never> {
    throw notAnEpisode();
  }

  async taskTools(): Promise<ToolsAnswer> {
    return { tools: [] };
  }

  /** Runs a command. Throws `too_many_in_flight` while `MOST_COMMANDS` run. One that another process began, and whose outcome is unknown, does not run again. */
  async call({ tool, input, mayHaveRun, upstreamTaskId }: BackendCall, signal: AbortSignal): Promise<ToolCallResult> {
    if (tool !== RUN_TOOL) throw notAnEpisode();
    if (mayHaveRun || upstreamTaskId != null) throw unknownOutcome('the process of the service that ran it has died');
    const body = runSchema.parse(input);
    if (this.#running >= MOST_COMMANDS) throw tooManyCommands();
    this.#running += 1;
    try {
      return await this.#run(body, signal);
    } finally {
      this.#running -= 1;
    }
  }

  async #run(body: z.output<typeof runSchema>, signal: AbortSignal): Promise<ToolCallResult> {
    const provider = await this.#options.provider().catch((error: unknown) => Promise.reject(sandboxError(error)));
    try {
      const result = await provider.exec(this.#options.id, execOf(body), signal);
      if (isCutShort(result, body.max_bytes)) {
        const detail = `The command wrote more than ${MOST_OUTPUT_BYTES} bytes. Limit it with max_bytes, or write to a file and download that.`;
        throw new PalestraError('answer_too_large', { detail });
      }
      return { text: runText(result), ok: true, reason: null, reward: null, finished: false };
    } catch (error) {
      if (!signal.aborted && error instanceof HostingError && error.code !== 'sandbox_lost') throw unknownOutcome(error.message);
      throw sandboxError(error);
    }
  }

  onFiles<T>(work: (files: SandboxFiles) => Promise<T>): Promise<T> {
    return withSandboxErrors(async () => work(new SandboxFiles(await this.#options.provider(), this.#options.id)));
  }

  /** Throws `invalid_request` for a sandbox that was created without a policy. */
  async setNetwork(network: SandboxNetwork, signal: AbortSignal): Promise<void> {
    if (!this.#options.hasPolicy)
      throw new PalestraError('invalid_request', { detail: 'The sandbox was created without network=, so its network cannot be changed.' });
    await withSandboxErrors(async () => (await this.#options.provider()).setNetwork(this.#options.id, network, signal));
  }

  /** The engine needs no pings. */
  async ping(): Promise<void> {}

  async delete(signal: AbortSignal): Promise<void> {
    await withSandboxErrors(async () => (await this.#options.provider()).remove(this.#options.id, signal));
    await this.#options.onRemoved();
  }
}

const notAnEpisode = (): PalestraError =>
  new PalestraError('invalid_request', { detail: 'The session is a sandbox, which has /run and the routes of files only.' });

const tooManyCommands = (): PalestraError =>
  new PalestraError('too_many_in_flight', {
    detail: `The sandbox runs ${MOST_COMMANDS} commands, the maximum, so this one was rejected. Send it again when one has ended.`,
    retryAfterSeconds: 1,
  });

const unknownOutcome = (why: string): PalestraError =>
  new PalestraError('session_lost', { detail: `Session lost: whether the command ran to its end is unknown: ${why}` });

export interface SandboxRef extends JsonObject {
  sandbox: string;
  has_policy: boolean;
}

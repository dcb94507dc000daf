import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable } from '@nestjs/common';
import { splitCredentials } from '@palestra/kit';
import { detectServer, HostingError, type ServerKind } from '@palestra/hosting';
import { outboundAgent, outboundFetch, OutboundPolicy } from '@palestra/outbound';
import { PalestraError } from '@palestra/protocol';
import { type Config, CONFIG } from '../../../platform/config.ts';
import { discover } from '../../discovery.service.ts';
import { openServer } from '../instances/instance-server.ts';
import { probeBackend } from '../probe/probe.ts';
import type { DeployLog } from './deploy-log.ts';
import type { VerifiedVersion } from './version-rows.ts';

/** Of discovery and probe together, of one server. */
const VERIFY_MS = 300_000;
/** A server that listens may not serve its routes yet. */
const DETECT_ATTEMPTS = 5;
const DETECT_PAUSE_MS = 1_000;
const CONNECT_MS = 5_000;
const ANSWER_MS = 10_000;

interface Server {
  url: string;
  /** `owner/name`. */
  deployment: string;
  /** For a URL of the author; null: the address of an instance. */
  remote: OutboundPolicy | null;
}

/** Finds out what a server speaks and offers, and plays the beginning of an episode on it. */
@Injectable()
export class Verifier {
  constructor(
    @Inject(OutboundPolicy) private readonly outbound: OutboundPolicy,
    @Inject(CONFIG) private readonly config: Config,
  ) {}

  /** Rejects with `instance_failed` when the server speaks no known protocol, or does not answer by it. */
  async verifyInstance(instance: { endpoint: string; deployment: string }, log: DeployLog, signal: AbortSignal): Promise<VerifiedVersion> {
    return this.#verify({ url: instance.endpoint, deployment: instance.deployment, remote: null }, log, signal);
  }

  /** Verifies each of several servers. Rejects when one differs from the first. */
  async verifyUrls(urls: readonly string[], deployment: string, log: DeployLog, signal: AbortSignal): Promise<VerifiedVersion> {
    let first: VerifiedVersion | null = null;
    for (const url of new Set(urls)) {
      log.note(`Asking ${splitCredentials(url).url}.`);
      const verified = await this.#verify({ url, deployment, remote: this.outbound }, log, signal);
      first ??= verified;
      const differences = [
        first.protocol !== verified.protocol && 'another protocol',
        first.toolsDigest !== verified.toolsDigest && 'other tools',
        first.tasksDigest !== verified.tasksDigest && 'other tasks',
      ].filter((difference) => difference !== false);
      if (differences.length > 0)
        throw new HostingError(
          'instance_failed',
          `${splitCredentials(url).url} has ${differences.join(' and ')} than ${splitCredentials(urls[0]!).url}. All URLs of a version must offer the same.`,
        );
    }
    return first!;
  }

  async #verify(server: Server, log: DeployLog, signal: AbortSignal): Promise<VerifiedVersion> {
    const late = AbortSignal.timeout(VERIFY_MS);
    const both = AbortSignal.any([signal, late]);
    try {
      const protocol = await this.#protocolOf(server, both);
      log.note(`It is ${NOUNS[protocol]}.`);
      const { url, deployment, remote } = server;
      const backend = openServer(protocol, url, { deployment, silenceMs: () => this.config.silenceTimeoutMs, remote });
      try {
        const discovery = await discover(backend, both);
        return { protocol, discovery, ...(await probeBackend(backend, discovery, both)) };
      } finally {
        await backend.close();
      }
    } catch (error) {
      signal.throwIfAborted();
      if (late.aborted)
        throw new HostingError('instance_failed', `The server did not answer the probe within ${VERIFY_MS / 1_000} s.`, { cause: error });
      if (error instanceof PalestraError) throw new HostingError('instance_failed', `The probe failed: ${error.message}`, { cause: error });
      throw error;
    }
  }

  async #protocolOf({ url, remote }: Server, signal: AbortSignal): Promise<ServerKind> {
    const agent = outboundAgent(remote ?? OutboundPolicy.only(url), CONNECT_MS, { headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS });
    const fetch = outboundFetch(agent);
    // An instance serves MCP at this path.
    const addresses = remote === null ? [url, new URL('mcp', `${url}/`).href] : [url];
    let problem: unknown = null;
    let hasAnswered = false;
    try {
      for (let attempt = 1; ; attempt += 1) {
        for (const address of addresses) {
          const found = await detectServer(address, signal, fetch).catch((error: unknown) => void (problem = error));
          if (found != null) return found;
          hasAnswered ||= found === null;
        }
        if (attempt === DETECT_ATTEMPTS) throw unknownProtocol(url, hasAnswered, problem);
        await sleep(DETECT_PAUSE_MS, undefined, { signal });
      }
    } finally {
      await agent.destroy();
    }
  }
}

const NOUNS: Record<ServerKind, string> = { remote: 'an ORS server', openenv: 'an OpenEnv server', mcp: 'an MCP server' };

function unknownProtocol(url: string, hasAnswered: boolean, problem: unknown): HostingError {
  if (problem instanceof PalestraError)
    return new HostingError('instance_failed', `${splitCredentials(url).url}: ${problem.message}`, { cause: problem });
  if (!hasAnswered && problem instanceof Error) {
    const { message } = problem.cause instanceof Error && problem.cause.message !== '' ? problem.cause : problem;
    return new HostingError('instance_failed', `${splitCredentials(url).url} does not respond: ${message}.`, { cause: problem });
  }
  return new HostingError('instance_failed', 'The server answers, but speaks neither ORS, OpenEnv nor MCP (at /mcp).', { cause: problem });
}

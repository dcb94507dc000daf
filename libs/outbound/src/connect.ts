import { PalestraError } from '@palestra/protocol';
import { Agent, buildConnector, fetch } from 'undici';
import type { OutboundPolicy } from './outbound-policy.ts';

/** An undici agent that follows the policy. `connectTimeoutMs` includes name resolution. */
export function outboundAgent(policy: OutboundPolicy, connectTimeoutMs: number, options: Omit<Agent.Options, 'connect'>): Agent {
  return new Agent({ ...options, connect: connectorOf(policy, connectTimeoutMs) });
}

function connectorOf(policy: OutboundPolicy, timeout: number): buildConnector.connector {
  const byPort = new Map<number, buildConnector.connector>();
  return (target, callback) => {
    const port = Number(target.port) || (target.protocol === 'https:' ? 443 : 80);
    const connect = byPort.get(port) ?? buildConnector({ timeout, lookup: policy.lookup(port) });
    byPort.set(port, connect);
    void open(policy, connect, { ...target, port: String(port) }, callback);
  };
}

async function open(
  policy: OutboundPolicy,
  connect: buildConnector.connector,
  target: buildConnector.Options,
  callback: buildConnector.Callback,
): Promise<void> {
  try {
    await policy.check(target.hostname, Number(target.port));
    connect(target, callback);
  } catch (error) {
    callback(error as Error, null);
  }
}

/** `fetch` through an agent. Returns redirects instead of following them. Rejects with `upstream_address_refused`. */
export function outboundFetch(agent: Agent): typeof globalThis.fetch {
  return async (url, init) => {
    try {
      return (await fetch(
        url as string,
        { ...init, dispatcher: agent, redirect: 'manual' } as Parameters<typeof fetch>[1],
      )) as unknown as Response;
    } catch (error) {
      const { cause } = error as { cause?: unknown };
      throw cause instanceof PalestraError ? cause : error;
    }
  };
}

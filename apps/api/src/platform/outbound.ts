import { isLoopback, OutboundPolicy } from '@palestra/outbound';
import type { Config } from './config.ts';

/**
 * The policy of all connections to URLs that users choose. The service's own database, object store and collector are never reachable, even
 * if private addresses are allowed.
 */
export function createOutboundPolicy({ host, privateUpstreams, s3, otlpEndpoint }: Config, databaseUrl: string): OutboundPolicy {
  const policy = new OutboundPolicy(privateUpstreams ?? (isLoopback(host) ? 'allowed' : 'refused'));
  for (const url of [databaseUrl, s3?.endpoint, otlpEndpoint]) if (url) policy.protect(url);
  return policy;
}

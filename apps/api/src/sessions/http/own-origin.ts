import type { FastifyRequest } from 'fastify';
import { PalestraError } from '@palestra/protocol';
import type { Caller } from '@palestra/session';
import { keyOf } from '../../platform/http/credentials.ts';

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/**
 * Refuses a request with an `Origin` and no API key unless it comes from a page of this server: a page of another site must not use the
 * session cookie of its reader. For an anonymous caller the host must also be a loopback name, because DNS of an attacker can resolve his
 * own name to this server. Throws `forbidden`.
 */
export function assertOwnOrigin({ headers }: Pick<FastifyRequest, 'headers'>, caller: Caller | null): void {
  const { origin, host } = headers;
  if (origin === undefined || (keyOf(headers) !== null && caller?.anonymous !== true)) return;
  const url = URL.canParse(origin) ? new URL(origin) : null;
  if (url?.host === host && (caller?.anonymous !== true || LOOPBACK.test(url?.hostname ?? ''))) return;
  throw new PalestraError('forbidden', { detail: `This page's origin (${origin}) may not use a browser session here. Use an API key.` });
}

import { Injectable } from '@nestjs/common';
import { PalestraError } from '@palestra/protocol';
import { RouteTable } from '../platform/http/route-table.ts';

/** Syntax of a namespace of environments: the first segment of `owner/name` in addresses. User names may have other characters. */
const NAMESPACE = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
/** Names without a route that users could mistake for the service or its operator. `palestra` has the bundled environments. */
const RESERVED = 'palestra openreward admin administrator root system api www public static internal support signup ors k'.split(' ');
/** Route parameters that are a namespace. */
const NAMESPACE_PARAMETERS = new Set([':owner', ':org', ':namespace']);

export const isNamespace = (name: string): boolean => NAMESPACE.test(name);

/**
 * Reserved names of organisations and users. Both share one namespace, which the database enforces (migration 0022_namespaces also reserves
 * these words).
 */
@Injectable()
export class Namespaces {
  #reserved: Set<string> | null = null;

  constructor(private readonly routes: RouteTable) {}

  /** Throws `name_reserved`. */
  assertNotReserved(name: string): void {
    this.#reserved ??= reservedWords(this.routes.list());
    if (this.#reserved.has(comparable(name))) throw new PalestraError('name_reserved');
  }
}

/** First segments of all routes, and fixed segments at the position of another route's namespace: `/v1/environments/{owner}`. */
export function reservedWords(routes: readonly { url: string }[]): Set<string> {
  const paths = routes.map(({ url }) => url.split('/').slice(1));
  const before = (path: string[], at: number) => path.slice(0, at).join('/');
  const prefixes = new Set([
    '',
    ...paths.flatMap((path) => path.flatMap((part, at) => (NAMESPACE_PARAMETERS.has(part) ? [before(path, at)] : []))),
  ]);
  const words = paths.flatMap((path) => path.filter((part, at) => !/^[:*]|^$/.test(part) && prefixes.has(before(path, at))));
  return new Set([...RESERVED, ...words].map(comparable));
}

/** As the database's `namespace_key`, without letters of other scripts. */
const comparable = (name: string): string =>
  name
    .normalize('NFKC')
    .replaceAll(/[\p{Default_Ignorable_Code_Point}\p{Cc}]/gu, '')
    .toLowerCase()
    .trim();

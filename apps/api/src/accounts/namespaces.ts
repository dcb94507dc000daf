import { Injectable } from '@nestjs/common';
import { PalestraError } from '@palestra/protocol';
import { RouteTable } from '../platform/http/route-table.ts';

/** What a namespace of environments looks like: the first segment of `owner/name` in addresses. Other names of people are names only. */
const NAMESPACE = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;
/** Names that are no route, and that people would take for the service or its operator. `palestra` has the bundled environments. */
const RESERVED = 'palestra openreward admin administrator root system api www public static internal support signup ors k'.split(' ');
/** Parameters of routes in whose place a namespace stands. */
const HOLDERS = new Set([':owner', ':org', ':namespace']);

export const isNamespace = (name: string): boolean => NAMESPACE.test(name);

/**
 * Words that no organisation and no person can be called. The names of organisations and people are one namespace, which the database
 * keeps (migration 0022_namespaces, where the same words are reserved for what does not come through here).
 */
@Injectable()
export class Namespaces {
  #reserved: Set<string> | null = null;

  constructor(private readonly routes: RouteTable) {}

  /** Throws `name_reserved`. */
  assertFree(name: string): void {
    this.#reserved ??= reservedWords(this.routes.list());
    if (this.#reserved.has(comparable(name))) throw new PalestraError('name_reserved');
  }
}

/** First segments of all routes, and the fixed segments that stand where another route has a namespace: `/v1/environments/{owner}`. */
export function reservedWords(routes: readonly { url: string }[]): Set<string> {
  const paths = routes.map(({ url }) => url.split('/').slice(1));
  const before = (path: string[], at: number) => path.slice(0, at).join('/');
  const places = new Set(['', ...paths.flatMap((path) => path.flatMap((part, at) => (HOLDERS.has(part) ? [before(path, at)] : [])))]);
  const words = paths.flatMap((path) => path.filter((part, at) => !/^[:*]|^$/.test(part) && places.has(before(path, at))));
  return new Set([...RESERVED, ...words].map(comparable));
}

/** As `namespace_key` of the database, without letters of other scripts. */
const comparable = (name: string): string =>
  name
    .normalize('NFKC')
    .replaceAll(/[\p{Default_Ignorable_Code_Point}\p{Cc}]/gu, '')
    .toLowerCase()
    .trim();

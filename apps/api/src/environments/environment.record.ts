import type { EnvironmentDiscoveryView } from '@palestra/protocol';
import type { Prisma } from '../platform/generated/prisma/client.ts';

/** An environment with its newest version, as stored. */
export type EnvironmentRecord = Prisma.EnvironmentGetPayload<{ include: typeof newestVersion }>;
export type VersionRecord = EnvironmentRecord['versions'][number];

export const newestVersion = { versions: { orderBy: { number: 'desc' }, take: 1 } } satisfies Prisma.EnvironmentInclude;

/** A server that the owner of the environment runs. */
export type ServerSource =
  | { kind: 'remote'; url: string }
  | { kind: 'openenv'; url: string }
  | { kind: 'mcp'; url: string; command?: undefined }
  | { kind: 'mcp'; url?: undefined; command: string[] };
export type EnvironmentSource = { kind: 'bundled'; name: string } | ServerSource;

export function sourceOf(version: VersionRecord): EnvironmentSource {
  const { sourceKind, sourceName, sourceUrl, sourceCommand } = version;
  switch (sourceKind) {
    case 'bundled':
      return { kind: 'bundled', name: sourceName ?? '' };
    case 'openenv':
      return { kind: 'openenv', url: sourceUrl ?? '' };
    case 'mcp':
      return sourceUrl === null ? { kind: 'mcp', command: sourceCommand } : { kind: 'mcp', url: sourceUrl };
    default:
      return { kind: 'remote', url: sourceUrl ?? '' };
  }
}

/** The columns that `sourceOf` reads. */
export function sourceColumns(source: EnvironmentSource) {
  return source.kind === 'bundled'
    ? { sourceKind: 'bundled', sourceName: source.name }
    : {
        sourceKind: source.kind,
        sourceUrl: source.url ?? null,
        sourceCommand: source.kind === 'mcp' ? (source.command ?? []) : [],
      };
}

/** The stored discovery; null if the server was never reached. */
export function storedDiscovery(version: VersionRecord | undefined): EnvironmentDiscoveryView | null {
  return (version?.discovery ?? null) as EnvironmentDiscoveryView | null;
}

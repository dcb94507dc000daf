import type { EnvironmentDiscoveryView } from '@palestra/protocol';
import type { Prisma } from '../platform/generated/prisma/client.ts';

/** An environment with its newest version, as the database has it. */
export type EnvironmentRecord = Prisma.EnvironmentGetPayload<{ include: typeof newestVersion }>;
export type VersionRecord = EnvironmentRecord['versions'][number];

export const newestVersion = { versions: { orderBy: { number: 'desc' }, take: 1 } } satisfies Prisma.EnvironmentInclude;

export type EnvironmentSource = { kind: 'bundled'; name: string } | { kind: 'remote'; url: string };

export function sourceOf(version: VersionRecord): EnvironmentSource {
  return version.sourceKind === 'bundled'
    ? { kind: 'bundled', name: version.sourceName ?? '' }
    : { kind: 'remote', url: version.sourceUrl ?? '' };
}

/** The cached answers of the server; null when it was never reached. */
export function storedDiscovery(version: VersionRecord | undefined): EnvironmentDiscoveryView | null {
  return (version?.discovery ?? null) as EnvironmentDiscoveryView | null;
}

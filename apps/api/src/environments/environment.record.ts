import type { Artifact, ProviderName, ServerKind } from '@palestra/hosting';
import type { EnvironmentDiscoveryView } from '@palestra/protocol';
import type { Prisma } from '../platform/generated/prisma/client.ts';

/** An environment with one of its versions, as stored: the one that `owner/name` selects, unless a method says otherwise. */
export type EnvironmentRecord = Prisma.EnvironmentGetPayload<{ include: typeof newestVersion }>;
export type VersionRecord = EnvironmentRecord['versions'][number];

/** A version that its deploy still verifies does not count. */
export const newestVersion = {
  versions: { where: { state: 'ready' }, orderBy: { number: 'desc' }, take: 1 },
} satisfies Prisma.EnvironmentInclude;

/** The channel that `owner/name` follows, where it exists. */
export const STABLE = 'stable';
/** For `currentOf`. */
export const currentVersion = {
  ...newestVersion,
  channels: { where: { name: STABLE }, include: { version: true } },
} satisfies Prisma.EnvironmentInclude;

/** With the version of the channel `stable`, or the newest one if there is no such channel. */
export function currentOf(row: Prisma.EnvironmentGetPayload<{ include: typeof currentVersion }>): EnvironmentRecord {
  const { channels, ...environment } = row;
  return channels[0] === undefined ? environment : { ...environment, versions: [channels[0].version] };
}

/** A server that the owner of the environment runs. */
export type ServerSource =
  | { kind: 'remote'; url: string }
  | { kind: 'openenv'; url: string }
  | { kind: 'mcp'; url: string; command?: undefined }
  | { kind: 'mcp'; url?: undefined; command: string[] };
/** What a deploy built. This service runs it. */
export interface HostedSource {
  kind: 'hosted';
  /** Null until the probe of its deploy detected it. */
  protocol: ServerKind | null;
  provider: ProviderName;
  artifact: Artifact;
  deployId: string | null;
  sourceDigest: string | null;
  commit: string | null;
}
export type EnvironmentSource = { kind: 'bundled'; name: string } | ServerSource | HostedSource;

export function sourceOf(version: VersionRecord): EnvironmentSource {
  const { sourceKind, sourceName, sourceUrl, sourceCommand } = version;
  switch (sourceKind) {
    case 'bundled':
      return { kind: 'bundled', name: sourceName ?? '' };
    case 'openenv':
      return { kind: 'openenv', url: sourceUrl ?? '' };
    case 'hosted':
      return hostedSourceOf(version);
    case 'mcp':
      return sourceUrl === null ? { kind: 'mcp', command: sourceCommand } : { kind: 'mcp', url: sourceUrl };
    default:
      return { kind: 'remote', url: sourceUrl ?? '' };
  }
}

function hostedSourceOf({ protocol, provider, artifact, deployId, sourceDigest, commit }: VersionRecord): HostedSource {
  return {
    kind: 'hosted',
    protocol: protocol as ServerKind | null,
    provider: provider as ProviderName,
    artifact: artifact as unknown as Artifact,
    deployId,
    sourceDigest,
    commit,
  };
}

/** The columns that `sourceOf` reads. */
export function sourceColumns(source: EnvironmentSource) {
  switch (source.kind) {
    case 'bundled':
      return { sourceKind: 'bundled', sourceName: source.name };
    case 'hosted': {
      const { kind, artifact, ...columns } = source;
      return {
        ...columns,
        sourceKind: kind,
        artifact: artifact as unknown as Prisma.InputJsonObject,
        artifactDigest: artifact.digest,
      };
    }
    default:
      return {
        sourceKind: source.kind,
        sourceUrl: source.url ?? null,
        sourceCommand: source.kind === 'mcp' ? (source.command ?? []) : [],
      };
  }
}

/** The stored discovery; null if the server was never reached. */
export function storedDiscovery(version: VersionRecord | undefined): EnvironmentDiscoveryView | null {
  return (version?.discovery ?? null) as EnvironmentDiscoveryView | null;
}

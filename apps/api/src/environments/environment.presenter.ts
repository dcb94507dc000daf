import type { EnvironmentVersionList, EnvironmentView, SessionPolicyView } from '@palestra/protocol';
import {
  type EnvironmentRecord,
  type EnvironmentSource,
  type HostedSource,
  sourceOf,
  storedDiscovery,
  type VersionRecord,
} from './environment.record.ts';

export interface EnvironmentStatus {
  status: EnvironmentView['status'];
  detail: string | null;
}

/** Resources of a self-hosted environment. There are no machine sizes to choose. */
const COMPUTE = { cpu_count: 1, mem_gb: 4 };
const MAX_CONCURRENCY = 500;
const MAX_SCALE = 10;

/** `detailed`: for callers who manage the environment. Others do not see the server's address. */
export function presentEnvironment(record: EnvironmentRecord, status: EnvironmentStatus, detailed: boolean): EnvironmentView {
  const version = record.versions[0];
  const splits = storedDiscovery(version)?.variants.find((variant) => variant.is_default)?.splits ?? [];
  const counts = splits.map((split) => split.num_tasks);
  return {
    id: record.id,
    owner: record.owner,
    name: record.name,
    description: record.description,
    is_private: record.isPrivate,
    readme_content: record.readmeContent,
    has_github_connection: false,
    original_github_url: record.externalGithubUrl,
    split_types: [...new Set(splits.map((split) => split.type))],
    total_task_count: counts.length === 0 || counts.includes(null) ? null : counts.reduce((sum: number, count) => sum + (count ?? 0), 0),
    compute_config: COMPUTE,
    max_concurrency: MAX_CONCURRENCY,
    max_scale: MAX_SCALE,
    sessions: record.sessionPolicy as SessionPolicyView | null,
    created_at: record.createdAt.toISOString(),
    updated_at: record.updatedAt.toISOString(),
    version: version?.number ?? null,
    source: presentSource(record, detailed),
    status: status.status,
    status_detail:
      status.detail === null || detailed || version?.sourceKind === 'bundled' ? status.detail : 'The environment server does not respond.',
  };
}

function presentSource(record: EnvironmentRecord, detailed: boolean): EnvironmentView['source'] {
  const version = record.versions[0];
  if (version === undefined) return { kind: 'none' };
  const source = sourceOf(version);
  return sourceView(source, detailed);
}

function sourceView(source: EnvironmentSource, detailed: boolean): { kind: EnvironmentSource['kind']; url?: string; command?: string[] } {
  const { kind } = source;
  if (kind === 'bundled' || kind === 'hosted' || !detailed) return { kind };
  return source.url === undefined ? { kind, command: source.command } : { kind, url: source.url };
}

export function presentVersion(version: VersionRecord, detailed: boolean): EnvironmentVersionList['versions'][number] {
  const { id, number, createdAt, discoveredAt } = version;
  const source = sourceOf(version);
  const variants = storedDiscovery(version)?.variants ?? [];
  const chosen = variants.find((variant) => variant.is_default);
  const counts = chosen?.splits.map((split) => split.num_tasks) ?? [null];
  return {
    id,
    number,
    created_at: createdAt.toISOString(),
    source: sourceView(source, detailed),
    task_set: version.taskSetId,
    discovered_at: discoveredAt?.toISOString() ?? null,
    variants: variants.map((variant) => variant.name),
    tools: chosen?.tools.tools.map((tool) => tool.name) ?? [],
    num_tasks: counts.includes(null) ? null : counts.reduce((sum: number, count) => sum + (count ?? 0), 0),
    deployed: source.kind === 'hosted' && detailed ? presentDeployed(source) : null,
  };
}

const presentDeployed = ({ deployId, protocol, provider, sourceDigest, commit }: HostedSource) => ({
  deploy: deployId,
  protocol,
  provider,
  source_digest: sourceDigest,
  commit,
});

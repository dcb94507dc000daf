import type { EnvironmentView } from '@palestra/protocol';
import { type EnvironmentRecord, sourceOf, storedDiscovery } from './environment.record.ts';

export interface EnvironmentStatus {
  status: EnvironmentView['status'];
  detail: string | null;
}

/** What a self-hosted environment process may use: there are no machine sizes to choose here. */
const COMPUTE = { cpu_count: 1, mem_gb: 4 };
const MAX_CONCURRENCY = 500;
const MAX_SCALE = 10;

export function presentEnvironment(record: EnvironmentRecord, status: EnvironmentStatus): EnvironmentView {
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
    created_at: record.createdAt.toISOString(),
    updated_at: record.updatedAt.toISOString(),
    source: presentSource(record),
    status: status.status,
    status_detail: status.detail,
  };
}

function presentSource(record: EnvironmentRecord): EnvironmentView['source'] {
  const version = record.versions[0];
  if (version === undefined) return { kind: 'none' };
  const source = sourceOf(version);
  // A private server's address is its owner's business; a public environment's is shown to all who may use it.
  return source.kind === 'remote' ? { kind: 'remote', url: source.url } : { kind: 'bundled' };
}

import type { DeployView } from '@palestra/protocol';
import type { DeployRow } from './deploy.sql.ts';

export function presentDeploy(row: DeployRow): DeployView {
  return {
    id: row.id,
    environment: `${row.owner}/${row.name}`,
    state: row.state,
    source: row.source,
    source_digest: row.source_digest,
    commit: row.commit,
    channel: row.channel,
    version: row.version,
    reused: row.reused,
    error: row.error,
    author: row.author,
    created_at: row.created_at.toISOString(),
    started_at: row.started_at?.toISOString() ?? null,
    ended_at: row.ended_at?.toISOString() ?? null,
  };
}

import type { TaskExportView } from '@palestra/protocol';
import type { TaskExport } from '../platform/generated/prisma/client.ts';

/** A running export without a sign of life for this long belongs to a server that died. */
export const LOST_AFTER_MS = 60_000;

export function presentExport(row: TaskExport, downloadUrl: string | null): TaskExportView {
  const lost = row.state === 'running' && Date.now() - row.updatedAt.getTime() > LOST_AFTER_MS;
  return {
    id: row.id,
    state: lost ? 'failed' : (row.state as TaskExportView['state']),
    environments: row.environments,
    split: row.split,
    format: row.format as TaskExportView['format'],
    prompt_format: row.promptFormat as TaskExportView['prompt_format'],
    total: row.total,
    written: row.written,
    failed: row.failed,
    failures: row.failures as unknown as TaskExportView['failures'],
    error: lost ? 'the server that wrote it died' : row.error,
    size: row.size === null ? null : Number(row.size),
    download_url: downloadUrl,
    created_at: row.createdAt.toISOString(),
    finished_at: row.finishedAt?.toISOString() ?? null,
  };
}

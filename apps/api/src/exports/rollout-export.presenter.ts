import { rewardStd } from '@palestra/exports';
import type { RolloutExportView } from '@palestra/protocol';
import type { ExportRow } from './rollout-export.sql.ts';

/** `urls`: URLs of its files in their order; empty unless it is complete. */
export function presentRolloutExport(row: ExportRow, urls: readonly string[]): RolloutExportView {
  const { request, cursor } = row;
  const figures = cursor?.figures && request.format !== 'curriculum' ? cursor.figures : null;
  return {
    id: row.id,
    kind: 'rollouts',
    state: row.state as RolloutExportView['state'],
    run: request.run_name,
    query: request.canonical_query,
    chosen: request.rollouts?.length ?? null,
    format: request.format,
    queue: request.review?.queue_id ?? null,
    lens: request.lens,
    redact: request.redact,
    total: row.total === null ? null : Number(row.total),
    written: Number(row.written),
    skipped: cursor?.skipped ?? 0,
    too_large: cursor?.too_large ?? [],
    shards: row.files.filter(({ key }) => !isDocument(key)).length,
    bytes: Number(row.bytes),
    files: row.state === 'complete' ? row.files.map(({ name, rows, size }, at) => ({ name: name!, rows, size, url: urls[at]! })) : [],
    figures: figures && {
      rollouts: figures.rollouts,
      scored: figures.scored,
      effective: figures.effective,
      reward_mean: figures.scored === 0 ? null : figures.reward.mean,
      reward_std: rewardStd(figures),
      environments: figures.environments,
      runs: figures.runs,
      normalisers: figures.normalisers,
    },
    as_of: row.as_of_seq,
    error: row.error,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    finished_at: row.finished_at?.toISOString() ?? null,
  };
}

/** Whether a file is the card or the manifest. */
export const isDocument = (key: string): boolean => key.endsWith('.md') || key.endsWith('manifest.json');

import { datasetCard, type ExportLineage } from '@palestra/exports';
import { lensRolloutRule } from '@palestra/metrics';
import type { ExportFile, ExportProgress, ExportRow } from './rollout-export.sql.ts';

interface ExportDocument {
  name: string;
  body: string;
  contentType: string;
}

/** Documents beside the data: its lineage as JSON, and the card of a Hugging Face folder. */
export function exportDocuments(row: ExportRow, progress: ExportProgress, files: readonly ExportFile[]): ExportDocument[] {
  const { request } = row;
  const lineage: ExportLineage = {
    export_id: row.id,
    format: request.format,
    org: request.org_name,
    run: request.run_name,
    query: request.query,
    canonical_query: request.canonical_query,
    lens: request.lens,
    lens_rule: lensRolloutRule(request.lens),
    redacted: request.redact,
    as_of: row.as_of_seq,
    created_at: row.created_at.toISOString(),
  };
  const data = files.map(({ name, rows, size }) => ({ name, rows, size }));
  const figures = request.format === 'curriculum' ? null : progress.figures;
  const { rollouts, review } = request;
  const { skipped, too_large } = progress;
  const manifest = { ...lineage, rollouts: rollouts ?? null, review: review ?? null, skipped, too_large, figures, files: data };
  const documents = [{ name: 'manifest.json', body: `${JSON.stringify(manifest, null, 2)}\n`, contentType: 'application/json' }];
  if (request.format === 'hf') {
    documents.push({ name: 'README.md', body: datasetCard(lineage, progress.figures), contentType: 'text/markdown; charset=utf-8' });
  }
  return documents;
}

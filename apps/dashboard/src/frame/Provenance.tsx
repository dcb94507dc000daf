import type { ReactNode } from 'react';
import type { Provenance } from '@palestra/protocol';

const descriptions: Record<Provenance, string> = {
  reported: 'As uploaded.',
  parsed: 'Read from another field of the upload.',
  inferred: 'Inferred from counts, order and timing. It can be wrong.',
  unknown: 'Not in the upload.',
};

/** Marks a value with its provenance (docs/reference/metrics.md#provenance). */
export function WithProvenance({
  provenance,
  rule,
  confidence,
  children,
}: {
  provenance: Provenance | undefined;
  /** The rule of the normaliser, for the tooltip. */
  rule?: string | undefined;
  /** Confidence of an inferred value, 0 to 1. */
  confidence?: number | null | undefined;
  children: ReactNode;
}) {
  const kind = provenance ?? 'reported';
  if (kind === 'reported') return <>{children}</>;
  const confidenceText = typeof confidence === 'number' ? ` Confidence ${Math.round(confidence * 100)} %.` : '';
  const title = `${descriptions[kind]}${rule ? ` Rule: ${rule}.` : ''}${kind === 'inferred' ? confidenceText : ''}`;
  if (kind === 'unknown') {
    return (
      <span className="text-ink-3" title={title}>
        –
      </span>
    );
  }
  return (
    <span title={title} className={kind === 'parsed' ? 'underline decoration-dotted decoration-ink-3 underline-offset-3' : ''}>
      {kind === 'inferred' && <span className="text-ink-3">~</span>}
      {children}
    </span>
  );
}

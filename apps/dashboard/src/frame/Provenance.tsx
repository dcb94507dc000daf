import type { ReactNode } from 'react';
import type { Provenance } from '@palestra/protocol';

const words: Record<Provenance, string> = {
  reported: 'As uploaded.',
  parsed: 'Read from another field of the upload.',
  inferred: 'Inferred from counts, order and timing: it can be wrong.',
  unknown: 'Not in the upload.',
};

/** A value with how it came to be known (dashboard.md 2.2): `~` inferred, dotted underline parsed, `–` unknown, else plain. */
export function Known({
  provenance,
  rule,
  confidence,
  children,
}: {
  provenance: Provenance | undefined;
  /** The normaliser's rule, for the hover. */
  rule?: string | undefined;
  /** 0 to 1, of an inferred value. */
  confidence?: number | null | undefined;
  children: ReactNode;
}) {
  const kind = provenance ?? 'reported';
  if (kind === 'reported') return <>{children}</>;
  const sure = typeof confidence === 'number' ? ` Confidence ${Math.round(confidence * 100)} %.` : '';
  const title = `${words[kind]}${rule ? ` Rule: ${rule}.` : ''}${kind === 'inferred' ? sure : ''}`;
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

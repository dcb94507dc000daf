import type { AlertEvidence } from '@palestra/protocol';

/** What an alert found in a run, at a step or at a time. */
export interface Judgement {
  step: number | null;
  /** Milliseconds since the epoch; null: now. */
  at: number | null;
  holds: boolean;
  evidence: AlertEvidence;
}

export interface Change {
  kind: 'firing' | 'resolved';
  judgement: Judgement;
}

/** Changes of one evaluation that are recorded; of more, the last ones. Even, so that kinds still alternate. */
const MAX_CHANGES = 20;

/**
 * The transitions of an alert in a run: it fires when its condition begins to hold and is resolved when it ends to hold. While nothing
 * changes there is no further event. `judgements`: in the order of steps or time.
 */
export function advance(firing: boolean, judgements: readonly Judgement[]): { firing: boolean; changes: Change[] } {
  let now = firing;
  const changes: Change[] = [];
  for (const judgement of judgements) {
    if (judgement.holds === now) continue;
    now = judgement.holds;
    changes.push({ kind: now ? 'firing' : 'resolved', judgement });
  }
  const odd = changes.length % 2;
  return { firing: now, changes: changes.length > MAX_CHANGES ? changes.slice(-MAX_CHANGES - odd) : changes };
}

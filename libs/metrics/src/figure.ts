export interface Figure {
  /** null when there is nothing to compute it from. */
  value: number | null;
  /** How many rollouts, groups or results the figure counts ... */
  denominator: number;
  /** ... of how many that exist. */
  of: number;
  note?: string;
}

/** The upload does not contain what the metric needs. A trainer's metric is never approximated. */
export interface Unavailable {
  unavailable: 'not in the upload';
  note?: string;
}

export type MetricAnswer = Figure | Unavailable;

export const NOT_IN_UPLOAD = 'not in the upload';

export function unavailable(note?: string): Unavailable {
  return note === undefined ? { unavailable: NOT_IN_UPLOAD } : { unavailable: NOT_IN_UPLOAD, note };
}

export function isFigure(answer: MetricAnswer): answer is Figure {
  return 'value' in answer;
}

export function figure(value: number | null, denominator: number, of: number, note?: string | null): Figure {
  const finite = value !== null && Number.isFinite(value) ? value : null;
  return note ? { value: finite, denominator, of, note } : { value: finite, denominator, of };
}

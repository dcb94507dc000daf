import type { CompareOperator, CompareValue, DurationUnit, Operand, RangeValue } from './ast.ts';

export const UNIT_MS: Record<DurationUnit, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

const isoPattern = /^(\d{4}-\d{2}-\d{2})(?:T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2})?)?$/;

/** Milliseconds since the epoch: `from` is inclusive, `to` exclusive; undefined is open. */
export interface TimeWindow {
  from?: number;
  to?: number;
}

/** The period of an ISO date or date-time: a whole day, minute, second or millisecond. Undefined for other texts. */
export function periodOf(iso: string): { from: number; to: number } | undefined {
  const found = isoPattern.exec(iso);
  if (found === null) return undefined;
  const [, day, seconds, fraction] = found;
  // Date.parse reads 31 February as 3 March.
  const midnight = Date.parse(`${day}T00:00:00Z`);
  if (Number.isNaN(midnight) || new Date(midnight).toISOString().slice(0, 10) !== day) return undefined;
  if (iso === day) return { from: midnight, to: midnight + UNIT_MS.d };
  const from = Date.parse(/(?:Z|[+-]\d{2}:\d{2})$/.test(iso) ? iso : `${iso}Z`);
  if (Number.isNaN(from)) return undefined;
  const unit = fraction !== undefined ? 'ms' : seconds !== undefined ? 's' : 'm';
  return { from, to: from + UNIT_MS[unit] };
}

/**
 * The period that a value of `received` selects at `now`. Ages count back: `2h` and `<2h` are the last two hours, `>2h` is earlier,
 * `1h..2h` is between one and two hours ago. A boundary belongs to the younger side.
 */
export function windowOf(value: CompareValue | RangeValue, now: number): TimeWindow {
  if (value.kind === 'compare') return compareWindow(value.operator, value.operand, now);
  const { low, high } = value;
  const window: TimeWindow = {};
  if (low?.kind === 'date') window.from = periodOf(low.iso)!.from;
  if (high?.kind === 'date') window.to = periodOf(high.iso)!.to;
  if (low?.kind === 'duration') window.to = now - durationMs(low);
  if (high?.kind === 'duration') window.from = now - durationMs(high);
  return window;
}

export function durationMs(operand: Operand): number {
  if (operand.kind === 'duration') return operand.value * UNIT_MS[operand.unit];
  return operand.kind === 'number' ? operand.value : NaN;
}

function compareWindow(operator: CompareOperator, operand: Operand, now: number): TimeWindow {
  if (operand.kind !== 'date') {
    const edge = now - durationMs(operand);
    return operator === '>' || operator === '>=' ? { to: edge } : { from: edge };
  }
  const { from, to } = periodOf(operand.iso)!;
  switch (operator) {
    case '=':
      return { from, to };
    case '<':
      return { to: from };
    case '<=':
      return { to };
    case '>':
      return { from: to };
    case '>=':
      return { from };
  }
}

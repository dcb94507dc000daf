import type { NumberShape } from './field.ts';

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

/** The problem of a number as typed, as a message for the reader; null if it is valid. */
export function problemOfNumber({ integer, minimum, maximum, above, below, multipleOf }: NumberShape, literal: string): string | null {
  if (!JSON_NUMBER.test(literal)) return integer ? 'Not a whole number.' : 'Not a number; write it like -1.5 or 2e6.';
  const value = Number(literal);
  if (integer && !Number.isInteger(value)) return 'Not a whole number.';
  if (minimum !== null && value < minimum) return `At least ${minimum}.`;
  if (maximum !== null && value > maximum) return `At most ${maximum}.`;
  if (above !== null && value <= above) return `Above ${above}.`;
  if (below !== null && value >= below) return `Below ${below}.`;
  if (multipleOf !== null && multipleOf > 0) {
    const times = value / multipleOf;
    if (Math.abs(times - Math.round(times)) > 1e-9 * Math.max(1, Math.abs(times))) return `A multiple of ${multipleOf}.`;
  }
  return null;
}

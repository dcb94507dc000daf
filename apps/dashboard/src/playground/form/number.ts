import type { NumberShape } from './field.ts';

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

/** The problem of a number as typed, as a message for the reader; null if it is valid. */
export function problemOfNumber({ integer, minimum, maximum, above, below, multipleOf }: NumberShape, literal: string): string | null {
  if (!JSON_NUMBER.test(literal)) return integer ? 'Not a whole number.' : 'Not a number. Enter a number such as -1.5 or 2e6.';
  const value = Number(literal);
  if (integer && !Number.isInteger(value)) return 'Not a whole number.';
  if (minimum !== null && value < minimum) return `Must be at least ${minimum}.`;
  if (maximum !== null && value > maximum) return `Must be at most ${maximum}.`;
  if (above !== null && value <= above) return `Must be above ${above}.`;
  if (below !== null && value >= below) return `Must be below ${below}.`;
  if (multipleOf !== null && multipleOf > 0) {
    const times = value / multipleOf;
    if (Math.abs(times - Math.round(times)) > 1e-9 * Math.max(1, Math.abs(times))) return `Must be a multiple of ${multipleOf}.`;
  }
  return null;
}

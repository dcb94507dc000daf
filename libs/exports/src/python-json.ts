import type { JsonValue } from '@palestra/protocol';
import { LosslessNumber } from 'lossless-json';

/**
 * JSON text with the defaults of Python's `json.dumps`: separators `", "` and `": "`, ASCII with `\uXXXX`, floats as `repr` prints them.
 * Trainers compare and hash such texts byte by byte.
 */
export function pythonJson(value: JsonValue): string {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'string') return pythonString(value);
  if (typeof value === 'number') return pythonNumber(value);
  if (typeof value === 'boolean') return String(value);
  if (value instanceof LosslessNumber) return pythonLiteral(value.value);
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(', ')}]`;
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  return `{${entries.map(([key, member]) => `${pythonString(key)}: ${pythonJson(member)}`).join(', ')}}`;
}

function pythonString(text: string): string {
  return JSON.stringify(text).replaceAll(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** A number without a point or exponent is an int in Python. */
function pythonNumber(value: number): string {
  const text = String(value);
  return /^-?\d+$/.test(text) ? text : pythonFloat(value);
}

function pythonLiteral(literal: string): string {
  return /^-?\d+$/.test(literal) ? BigInt(literal).toString() : pythonFloat(Number(literal));
}

/** `repr(float)`: the shortest digits, with an exponent below 1e-4 and from 1e16. */
function pythonFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity';
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const [mantissa, power] = Math.abs(value).toExponential().split('e') as [string, string];
  const digits = mantissa.replace('.', '');
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) {
    return `${sign}${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.padEnd(exponent + 1, '0');
  return `${sign}${whole.slice(0, exponent + 1)}.${whole.slice(exponent + 1) || '0'}`;
}

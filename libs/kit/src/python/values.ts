import { isObject, type JsonValue, toPlainNumber } from '@palestra/protocol';

/**
 * Values and texts as Python prints and parses them, for the error texts of OpenEnv's server and for texts that SkyRL's adapters show to
 * models.
 */

/** The white space of Python's `str.strip()` and `int()`. */
const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const EDGES = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, 'g');

export const pythonStrip = (text: string): string => text.replaceAll(EDGES, '');

/** Whether Python's json reads the number as an int: it has neither a point nor an exponent. */
export function isPythonInt(value: JsonValue): boolean {
  return isNumber(value) && /^-?\d+$/.test(String(value));
}

/** Also true for a `LosslessNumber`, whose text is its written form. */
export const isNumber = (value: JsonValue): boolean => toPlainNumber(value) !== null;

/** `type(value).__name__` */
export function pythonType(value: JsonValue): string {
  if (value === null || value === undefined) return 'NoneType';
  if (Array.isArray(value)) return 'list';
  if (isNumber(value)) return isPythonInt(value) ? 'int' : 'float';
  if (typeof value === 'string') return 'str';
  return typeof value === 'boolean' ? 'bool' : 'dict';
}

/** `not value` */
export function isFalsy(value: JsonValue): boolean {
  if (isNumber(value)) return toPlainNumber(value) === 0;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) ? Object.keys(value).length === 0 : !value;
}

/** `str(value)`: strings are returned unchanged. */
export const pythonStr = (value: JsonValue): string => (typeof value === 'string' ? value : pythonRepr(value));

/** `repr(value)` */
export function pythonRepr(value: JsonValue): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'string') return reprOfString(value);
  if (isNumber(value)) return isPythonInt(value) ? BigInt(String(value)).toString() : reprOfFloat(toPlainNumber(value)!);
  if (Array.isArray(value)) return `[${value.map(pythonRepr).join(', ')}]`;
  const members = Object.entries(value as object).map(([key, member]) => `${reprOfString(key)}: ${pythonRepr(member)}`);
  return `{${members.join(', ')}}`;
}

/** The shortest digits, with an exponent below 1e-4 and from 1e16. */
function reprOfFloat(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const [mantissa, power] = Math.abs(value).toExponential().split('e') as [string, string];
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) {
    return `${sign}${mantissa}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
  }
  const digits = mantissa.replace('.', '');
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.padEnd(exponent + 1, '0');
  return `${sign}${whole.slice(0, exponent + 1)}.${whole.slice(exponent + 1) || '0'}`;
}

const SHORT_ESCAPES: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };
/** `not str.isprintable()`, except for the space. */
const UNPRINTABLE = /[\p{C}\p{Z}]/u;

function reprOfString(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const units = Array.from(text, (unit) => {
    if (unit === quote) return `\\${unit}`;
    if (unit in SHORT_ESCAPES) return SHORT_ESCAPES[unit]!;
    if (unit === ' ' || !UNPRINTABLE.test(unit)) return unit;
    const code = unit.codePointAt(0)!;
    const [mark, width] = code < 0x100 ? ['x', 2] : code < 0x10000 ? ['u', 4] : ['U', 8];
    return `\\${mark}${code.toString(16).padStart(width as number, '0')}`;
  });
  return quote + units.join('') + quote;
}

/** Python cuts the text of this exception here. */
const REPR_LIMIT = 200;

/** `int(text)` of ASCII digits, as its decimal digits. Throws an Error with the text of Python's exception. */
export function pythonInt(text: string): string {
  const digits = pythonStrip(text);
  if (!/^[-+]?\d+(?:_\d+)*$/.test(digits)) {
    throw new Error(`invalid literal for int() with base 10: ${Array.from(reprOfString(text)).slice(0, REPR_LIMIT).join('')}`);
  }
  return BigInt(digits.replaceAll(/[_+]/g, '')).toString();
}

/** `float(text)` as JSON. Throws an Error with the text of Python's exception, also for NaN and infinities. */
export function pythonFloat(text: string): string {
  const digits = pythonStrip(text);
  if (/^[-+]?(?:nan|inf|infinity)$/i.test(digits)) throw new Error(NOT_JSON);
  if (!/^[-+]?(?:\d+(?:_\d+)*\.?(?:\d+(?:_\d+)*)?|\.\d+(?:_\d+)*)(?:[eE][-+]?\d+(?:_\d+)*)?$/.test(digits)) {
    throw new Error(`could not convert string to float: ${reprOfString(text)}`);
  }
  const value = Number(digits.replaceAll('_', ''));
  if (!Number.isFinite(value)) throw new Error(NOT_JSON);
  return reprOfFloat(value);
}

/** The error text of Python's HTTP libraries for NaN and the infinities in a body. */
export const NOT_JSON = 'Out of range float values are not JSON compliant';

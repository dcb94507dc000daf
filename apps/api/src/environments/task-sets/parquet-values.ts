import type { FileMetaData, SchemaElement } from 'hyparquet';
import { LosslessNumber } from 'lossless-json';
import { boundedJson } from './task-record.ts';

/** Parquet values whose digits do not fit into JavaScript's numbers and dates. */

const decoder = new TextDecoder('utf-8', { fatal: true });

/** Parsers for the reader: UTF-8 texts, days without a time, times with all digits. */
export const parsers = {
  stringFromBytes: (bytes: Uint8Array) => bytes && decoder.decode(bytes),
  jsonFromBytes: (bytes: Uint8Array) => bytes && boundedJson(decoder.decode(bytes)),
  dateFromDays: (days: number) => new Date(days * 86_400_000).toISOString().slice(0, -'T00:00:00.000Z'.length),
  timestampFromMicroseconds: (micros: bigint) => timeText(micros * 1_000n, 6),
  timestampFromNanoseconds: (nanos: bigint) => timeText(nanos, 9),
};

/** ISO text, with `digits` of a second if milliseconds do not suffice. */
function timeText(nanos: bigint, digits: number): string {
  const rest = ((nanos % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const text = new Date(Number((nanos - rest) / 1_000_000n)).toISOString();
  return rest === 0n
    ? text
    : text.replace(
        'Z',
        `${rest
          .toString()
          .padStart(6, '0')
          .slice(0, digits - 3)}Z`,
      );
}

const isDecimal = ({ converted_type: converted, logical_type: logical, type }: SchemaElement): boolean =>
  (converted === 'DECIMAL' || logical?.type === 'DECIMAL') && type !== 'BYTE_ARRAY';

/** The metadata without decimal types, so that the reader returns stored integers for `decimalOf`. */
export function withStoredDecimals(metadata: FileMetaData): FileMetaData {
  const schema = metadata.schema.map((element): SchemaElement => {
    if (!isDecimal(element)) return element;
    const { converted_type: _converted, logical_type: _logical, ...stored } = element;
    return stored;
  });
  return { ...metadata, schema };
}

/** null if the column has no decimals. `4.35` is stored as 435, and 435 × 0.01 is another floating-point number. */
export function decimalOf(value: unknown, element: SchemaElement | undefined): LosslessNumber | null {
  if (element === undefined || !isDecimal(element)) return null;
  const stored = storedInteger(value);
  if (stored === null) return null;
  const scale = element.scale ?? (element.logical_type?.type === 'DECIMAL' ? element.logical_type.scale : 0);
  const digits = (stored < 0n ? -stored : stored).toString().padStart(scale + 1, '0');
  const whole = (stored < 0n ? '-' : '') + digits.slice(0, digits.length - scale);
  if (scale === 0) return new LosslessNumber(whole);
  return new LosslessNumber(`${whole}.${digits.slice(-scale).replace(/(?<=.)0+$/, '')}`);
}

/** Bytes are big-endian two's complement. */
function storedInteger(value: unknown): bigint | null {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'number') return BigInt(value);
  if (!(value instanceof Uint8Array)) return null;
  return BigInt.asIntN(8 * value.length, value.length === 0 ? 0n : BigInt(`0x${Buffer.from(value).toString('hex')}`));
}

import { TimeSlice } from '@palestra/kit';
import type { ExportedRollout } from './exported-rollout.ts';
import { type Column, EXPORT_COLUMNS, MESSAGE_COLUMNS } from './narrow-columns.ts';

const rolloutJson = objectWriter(EXPORT_COLUMNS);
const messageJson = objectWriter(MESSAGE_COLUMNS);

/** One rollout per line with its messages. JSON fields are values, times are ISO 8601. */
export async function* rolloutJsonLines(rows: AsyncIterable<ExportedRollout>): AsyncGenerator<Uint8Array> {
  const slice = new TimeSlice();
  for await (const row of rows) {
    yield Buffer.from(`${rolloutJson(row)},"messages":[${row.messages.map((message) => `${messageJson(message)}}`).join(',')}]}\n`);
    if (slice.isOver) await slice.renew();
  }
}

/**
 * Returns a function that writes an object's columns as JSON, without the last brace. It inserts JSON text unchanged, so that large numbers
 * keep their digits.
 */
function objectWriter<Row extends object>(columns: readonly Column<keyof Row & string>[]): (row: Row) => string {
  const members = columns.map(({ name, type }, at) => ({
    name,
    isJson: type === 'json',
    key: `${at === 0 ? '{' : ','}${JSON.stringify(name)}:`,
  }));
  return (row) => {
    let json = '';
    for (const { name, isJson, key } of members) {
      const value = row[name] as unknown;
      json += key + (value === null || value === undefined ? 'null' : isJson ? (value as string) : JSON.stringify(value));
    }
    return json;
  };
}

import type { ExportedMessage, ExportedRollout, ExportedRow } from './exported-rollout.ts';
import { type Column, EXPORT_COLUMNS, MESSAGE_COLUMNS } from './narrow-columns.ts';

/** One rollout per line with its messages. JSON fields are values, times are ISO 8601. */
export async function* rolloutJsonLines(rows: AsyncIterable<ExportedRollout>): AsyncGenerator<Uint8Array> {
  for await (const row of rows) {
    const messages = row.messages.map((message) => jsonObject(MESSAGE_COLUMNS, message));
    yield Buffer.from(`${narrowJson(row).slice(0, -1)},"messages":[${messages.join(',')}]}\n`);
  }
}

/** The columns of an export as a JSON object. */
export function narrowJson(row: ExportedRow): string {
  return jsonObject(EXPORT_COLUMNS, row);
}

/** Inserts JSON text unchanged, so that large numbers keep their digits. */
function jsonObject(columns: readonly Column[], row: ExportedRow | ExportedMessage): string {
  const members = columns.map(({ name, type }) => {
    const value = row[name as keyof typeof row] as unknown;
    return `${JSON.stringify(name)}:${type === 'json' ? ((value as string | null) ?? 'null') : JSON.stringify(value ?? null)}`;
  });
  return `{${members.join(',')}}`;
}

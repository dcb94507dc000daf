import { createReadStream } from 'node:fs';
import { linesOf } from './lines.ts';
import type { TaskRow } from './task-row.ts';

/** A row of an uploaded file after `task-file.work.ts` has read it. */
export interface ReadRow extends Pick<TaskRow, 'taskId' | 'spec' | 'prompt'> {
  /** Hexadecimal; null where there is no prompt. */
  specHash: string | null;
  /** Where it stands in the file: `line 3` or `row 3`. */
  where: string;
}

/** Rows as one JSON text a line. */
export const lineOf = ({ taskId, spec, specHash, prompt }: TaskRow, where: string): string =>
  `${JSON.stringify({ taskId, spec, specHash: specHash?.toString('hex') ?? null, prompt, where } satisfies ReadRow)}\n`;

export async function* readRows(path: string): AsyncGenerator<ReadRow> {
  const pieces = createReadStream(path, { highWaterMark: 1024 * 1024 });
  for await (const line of linesOf(pieces, Infinity, unreachable)) yield JSON.parse(line.toString('utf8')) as ReadRow;
}

const unreachable = () => new Error('we wrote these lines ourselves');

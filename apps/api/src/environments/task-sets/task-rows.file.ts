import { createReadStream } from 'node:fs';
import { splitLines } from './lines.ts';
import type { TaskRow } from './task-row.ts';

/** A row of an uploaded file, parsed by `task-file.work.ts`. */
export interface ParsedTaskRow extends Pick<TaskRow, 'taskId' | 'spec' | 'prompt'> {
  /** Hexadecimal; null without a prompt. */
  specHash: string | null;
  /** Position in the file: `line 3` or `row 3`. */
  where: string;
}

/** One line of JSON. */
export const formatRow = ({ taskId, spec, specHash, prompt }: TaskRow, where: string): string =>
  `${JSON.stringify({ taskId, spec, specHash: specHash?.toString('hex') ?? null, prompt, where } satisfies ParsedTaskRow)}\n`;

export async function* readRows(path: string): AsyncGenerator<ParsedTaskRow> {
  const pieces = createReadStream(path, { highWaterMark: 1024 * 1024 });
  for await (const line of splitLines(pieces, Infinity, unreachable)) yield JSON.parse(line.toString('utf8')) as ParsedTaskRow;
}

const unreachable = () => new Error('a line of our own file is longer than Infinity');

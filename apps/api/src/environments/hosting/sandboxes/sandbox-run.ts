import type { ExecRequest, ExecResult } from '@palestra/hosting';
import { PalestraError } from '@palestra/protocol';
import { z } from 'zod';

/** Body of `/run`. */
export const runSchema = z.object({
  cmd: z.string().max(15_000_000),
  timeout_s: z.number().nullish(),
  max_bytes: z.int().min(0).nullish(),
  shell: z
    .string()
    .regex(/^\/[\w./-]{1,100}$/, 'the path of a shell')
    .default('/bin/bash'),
  task_id: z.string().nullish(),
});

/** Shorter than the deadline of a call, after which its outcome would be unknown. */
const LONGEST_MS = 5.9 * 3_600_000;
/** More output is refused if the client wants it, because the ledger stores it. */
export const MOST_OUTPUT_BYTES = 16 * 2 ** 20;
/** The kernel's limit of one argument is 128 KiB. */
const LONGEST_ARGUMENT = 100_000;
const EVALUATE = 'c=$(cat; printf x); exec < /dev/null; eval "${c%x}"';

export function execOf({ cmd, timeout_s: timeoutS, max_bytes: maxBytes, shell }: z.output<typeof runSchema>): ExecRequest {
  if (cmd.includes('\0')) throw new PalestraError('invalid_request', { detail: 'A command has no NUL.' });
  const isLong = Buffer.byteLength(cmd) > LONGEST_ARGUMENT;
  return {
    command: [shell, '-c', isLong ? EVALUATE : cmd],
    ...(isLong && { stdin: Buffer.from(cmd) }),
    timeoutMs: timeoutS == null || timeoutS <= 0 ? LONGEST_MS : Math.min(LONGEST_MS, timeoutS * 1_000),
    maxBytes: Math.min(MOST_OUTPUT_BYTES, maxBytes ?? MOST_OUTPUT_BYTES),
  };
}

/** Whether the client would take what was cut for the whole output. */
export const isCutShort = ({ truncated }: ExecResult, maxBytes: number | null | undefined): boolean =>
  truncated && (maxBytes == null || maxBytes > MOST_OUTPUT_BYTES);

/** The result of a `/run` as clients read it. */
export const runText = ({ exitCode, output, timedOut }: ExecResult): string =>
  JSON.stringify({ return_code: exitCode, output: output.toString('base64'), timed_out: timedOut });

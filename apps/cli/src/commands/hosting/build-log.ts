import type { PalestraClient } from '@palestra/client';
import type { DeployView, HostingLogLine } from '@palestra/protocol';
import { DeployError } from './deploy-error.ts';
import { drained, logText, shownLine } from './log-text.ts';

/** The last line that was shown. */
export interface LogPosition {
  after: number;
}

/** Shows the build log on standard error, as it is written, until the deploy has ended. */
export async function showBuildLog(client: PalestraClient, id: string, position: LogPosition, signal: AbortSignal): Promise<void> {
  for await (const line of client.hosting.deployLogs(id, { follow: true, after: position.after, signal })) {
    position.after = line.seq;
    process.stderr.write(`${shownLine(process.stderr, line)}\n`);
    await drained(process.stderr);
  }
}

/** Lines before and after the one that failed. */
const BEFORE = 5;
const AFTER = 2;

/** The error of a deploy that has no version, with the line of the log that failed and those around it. */
export async function deployError(client: PalestraClient, { id, state, error }: DeployView): Promise<DeployError> {
  if (state === 'cancelled') return new DeployError(error?.code ?? 'build_cancelled', 'The deploy was cancelled.');
  if (error === null) return new DeployError('build_failed', `The deploy failed. Its log: palestra env logs --deploy ${id}`);
  const context = error.line === null ? [] : contextOf(await linesAround(client, id, error.line), error.line);
  // The other lines of the detail are in the log.
  const detail = context.length === 0 ? error.detail : error.detail.split('\n', 1)[0]!;
  return new DeployError(error.code, [`The deploy failed: ${detail}`, ...context].join('\n'));
}

interface NumberedLine {
  number: number;
  line: HostingLogLine;
}

async function linesAround(client: PalestraClient, id: string, failed: number): Promise<NumberedLine[]> {
  const around: NumberedLine[] = [];
  let number = 0;
  for await (const line of client.hosting.deployLogs(id)) {
    number += 1;
    if (number >= failed - BEFORE) around.push({ number, line });
    if (number >= failed + AFTER) break;
  }
  return around;
}

/** Numbered lines, the one that failed marked with `>`. */
export function contextOf(lines: readonly NumberedLine[], failed: number): string[] {
  const width = String(lines.at(-1)?.number ?? 0).length;
  return lines.map(({ number, line }) => `${number === failed ? '>' : ' '} ${String(number).padStart(width)} | ${logText(line)}`.trimEnd());
}

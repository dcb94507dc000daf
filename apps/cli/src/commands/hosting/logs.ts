import type { PalestraClient } from '@palestra/client';
import type { HostingLogLine, LogSeverity } from '@palestra/protocol';
import { InterruptedError } from '../../exit-codes.ts';
import { printable, type Printed, printOne } from '../../output.ts';
import { UsageError, withClient } from '../../settings.ts';
import { drained, shownLine } from './log-text.ts';
import { environmentOnly, namedEnvironment } from './named-environment.ts';

interface LogFlags extends Printed {
  follow: boolean;
  tail?: number;
  instance?: string;
  severity?: LogSeverity;
  search?: string;
  build: boolean;
  deploy?: string;
}

/** Prints lines as they arrive. Ctrl-C is the end of a followed log, not an error. */
export async function showLogs(target: string | undefined, options: LogFlags): Promise<void> {
  const { output, follow } = options;
  const isList = output === 'json' || output === 'yaml';
  if (follow && isList) throw new UsageError(`A followed log has no end, so it cannot be ${output}. Use -o jsonl.`);
  const isBuild = options.build || options.deploy !== undefined;
  if (isBuild && options.instance !== undefined) throw new UsageError('A build has no instance. Leave --instance out.');
  await withClient(async (client, signal) => {
    const lines = isBuild ? await buildLines(client, target, options, signal) : await runtimeLines(client, target, options, signal);
    if (isList) return printAll(options, lines);
    try {
      for await (const line of lines) await printLine(options, line, isBuild);
    } catch (error) {
      if (!(follow && error instanceof InterruptedError)) throw error;
    }
  });
}

async function printAll(options: Printed, lines: AsyncIterable<HostingLogLine>): Promise<void> {
  const all: HostingLogLine[] = [];
  for await (const line of lines) all.push(line);
  await printOne(options, all, () => {});
}

async function printLine(options: Printed, line: HostingLogLine, isBuild: boolean): Promise<void> {
  await printOne(options, line, () => {
    // The lines of several instances are mixed.
    const source = isBuild ? '' : ` ${line.source.slice(0, 8)}`;
    process.stdout.write(`${printable(line.at + source)} ${shownLine(process.stdout, line)}\n`);
  });
  await drained(process.stdout);
}

async function runtimeLines(client: PalestraClient, target: string | undefined, options: LogFlags, signal: AbortSignal) {
  const { environment, version } = await namedEnvironment(client, target);
  const { instance } = options;
  return client.hosting.logs(environment, { ...lineOptions(options), instance, version: version ?? undefined, signal });
}

async function buildLines(client: PalestraClient, target: string | undefined, options: LogFlags, signal: AbortSignal) {
  const id = options.deploy ?? (await lastDeploy(client, await environmentOnly(client, target)));
  return client.hosting.deployLogs(id, { ...lineOptions(options), signal });
}

async function lastDeploy(client: PalestraClient, environment: string): Promise<string> {
  const [last] = await client.hosting.deploys(environment);
  if (last === undefined) throw new Error(`${environment} was never deployed.`);
  return last.id;
}

const lineOptions = ({ follow, tail, severity, search }: LogFlags) => ({ follow, tail, severity, search });

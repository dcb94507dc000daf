import { coloured } from '../colour.ts';
import { type CheckResult, type Finding, runCheck, type Status } from '../doctor/check.ts';
import { checkContainers, checkDisk, checkNode } from '../doctor/machine.ts';
import { checkPostgres } from '../doctor/postgres.ts';
import { checkS3 } from '../doctor/s3.ts';
import { checkClock, checkIsolation, checkKey, checkServer, checkVersions, probeServer } from '../doctor/server.ts';
import { EXIT } from '../exit-codes.ts';
import { printable, type Printed, printOne } from '../output.ts';

/** Checks this machine and the server, all at once, and prints the results in this order. Exit code 5 if a check fails. */
export async function doctor(options: Printed): Promise<void> {
  const { env } = process;
  const probe = await probeServer(env);
  const checks: [name: string, run: () => Finding | Promise<Finding>][] = [
    ['node', () => checkNode()],
    ['disk', () => checkDisk(env['PALESTRA_DATA_DIR'] || '.palestra')],
    ['server', () => checkServer(probe)],
    ['versions', () => checkVersions(probe)],
    ['key', () => checkKey(probe)],
    ['clock', () => checkClock(probe)],
    ['isolation', () => checkIsolation(probe)],
    ['postgresql', () => checkPostgres(env)],
    ['s3', () => checkS3(env)],
    ['containers', () => checkContainers()],
  ];
  const results = await Promise.all(checks.map(([name, run]) => runCheck(name, run)));
  await printOne(options, results, () => results.forEach(print));
  if (results.some(({ status }) => status === 'fail')) process.exitCode = EXIT.unmet;
}

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const satisfies Record<Status, string>;

function print({ check, status, detail, advice }: CheckResult): void {
  const mark = coloured(process.stdout, COLOURS[status], status.padEnd(4));
  process.stdout.write(`${mark}  ${check.padEnd(10)}  ${printable(detail)}\n`);
  if (advice !== null) process.stdout.write(`${' '.repeat(18)}${printable(advice)}\n`);
}

import { createInterface } from 'node:readline';
import type { PalestraClient } from '@palestra/client';
import { FINAL_DEPLOY_STATES, type DeployView } from '@palestra/protocol';
import { EXIT_SIGNALS, type InterruptedError } from '../../exit-codes.ts';
import { type LogPosition, showBuildLog } from './build-log.ts';

/** How long the end of a cancelled build is waited for. */
const CANCEL_DEADLINE_MS = 30_000;

/**
 * What Ctrl-C does while a deploy runs: a person is asked whether to cancel it; without a terminal it is cancelled. It goes on after a
 * hang-up, which an interrupted connection to a machine causes.
 */
export async function endInterruptedDeploy(
  client: PalestraClient,
  { id }: DeployView,
  position: LogPosition,
  { exitCode }: InterruptedError,
): Promise<void> {
  const isAsked = exitCode === EXIT_SIGNALS.SIGINT && process.stdin.isTTY && process.stderr.isTTY;
  const cancels = isAsked ? await askToCancel() : exitCode !== EXIT_SIGNALS.SIGHUP;
  if (!cancels) {
    process.stderr.write(`The deploy goes on. Its log: palestra env logs -f --deploy ${id}\n`);
    return;
  }
  const late = AbortSignal.timeout(CANCEL_DEADLINE_MS);
  const { state } = await client.hosting.cancelDeploy(id, late);
  if (!FINAL_DEPLOY_STATES.has(state)) {
    process.stderr.write('Cancelling the deploy ...\n');
    await showBuildLog(client, id, position, late);
  }
  const ended = await client.hosting.getDeploy(id, late);
  process.stderr.write(ended.state === 'cancelled' ? 'The deploy was cancelled.\n' : `The deploy had ended before: ${ended.state}.\n`);
}

/** False after "n", another Ctrl-C or the end of the input. */
async function askToCancel(): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await new Promise<string>((resolve) => {
      terminal.once('SIGINT', () => resolve('n'));
      terminal.once('close', () => resolve('n'));
      terminal.question('\nCancel the deploy? [Y/n] ', resolve);
    });
    return !/^\s*n/i.test(answer);
  } finally {
    terminal.close();
  }
}

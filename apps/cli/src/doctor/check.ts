export type Status = 'ok' | 'warn' | 'fail';

/** The result of one check. `advice`: what to do about it, one sentence; null if nothing is to be done. */
export interface CheckResult {
  check: string;
  status: Status;
  detail: string;
  advice: string | null;
}

export type Finding = Omit<CheckResult, 'check'>;

export const ok = (detail: string): Finding => ({ status: 'ok', detail, advice: null });
export const warn = (detail: string, advice: string): Finding => ({ status: 'warn', detail, advice });
export const fail = (detail: string, advice: string): Finding => ({ status: 'fail', detail, advice });

/** Deadline of a check, for those that wait longer than their own deadlines. */
const DEADLINE_MS = 30_000;

/** For problems without a better advice. */
const ADVICE = 'Look at the logs of the service, then run this command again.';

/** Runs a check. An error, or no result in time, is a failed check. */
export async function runCheck(check: string, run: () => Finding | Promise<Finding>): Promise<CheckResult> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Finding>((resolve) => {
    timer = setTimeout(() => resolve(fail(`No result within ${DEADLINE_MS / 1_000} s.`, ADVICE)), DEADLINE_MS);
  });
  const found = await Promise.race([Promise.resolve().then(run), late])
    .catch((error: unknown) => fail(messageOf(error), ADVICE))
    .finally(() => clearTimeout(timer));
  return { check, ...found };
}

/** The messages of an error and of its causes. A refused dual-stack connection is an AggregateError with an empty message. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return messageOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  const { cause, message, name } = error;
  // The message of every error of fetch, whose cause has the reason.
  if (message === 'fetch failed' && cause instanceof Error) return messageOf(cause);
  const text = message || name;
  return cause instanceof Error ? `${text}: ${messageOf(cause)}` : text;
}

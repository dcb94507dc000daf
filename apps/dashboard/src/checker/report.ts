import { formatCount, UNKNOWN } from '../format/number.ts';
import type { CheckedRollout, CheckResult } from './check.ts';
import { fieldsOf, missingFieldsOf, warningsOf } from './fields.ts';

const events = (count: number) => `${formatCount(count)} ${count === 1 ? 'event' : 'events'}`;

/** The response of the server in one sentence. */
export function verdictOf({ status, accepted, repeated, problems }: CheckResult): string {
  const rejected = problems.length;
  if (status !== 200) return `Rejected with status ${status}: no event would be stored.`;
  const parts = [`${events(accepted)} would be stored`];
  if (rejected > 0) parts.push(`${formatCount(rejected)} rejected`);
  if (repeated > 0) parts.push(`${formatCount(repeated)} repeated`);
  return `Accepted with status 200: ${parts.join(', ')}.`;
}

export const titleOf = ({ start, normalised }: CheckedRollout): string =>
  start === null ? `Rollout ${normalised.id}, without start event` : (normalised.rolloutName ?? `Rollout ${normalised.id}`);

function linesOf(rollout: CheckedRollout): string[] {
  const width = Math.max(...fieldsOf(rollout).map(({ name }) => name.length));
  const fields = fieldsOf(rollout).map(
    ({ name, value, provenance, rule, source }) =>
      `  ${name.padEnd(width)}  ${value ?? UNKNOWN}  (${provenance}${source === null ? '' : `, from ${source}`}: ${rule})`,
  );
  const missing = missingFieldsOf(rollout).map(
    ({ key, effect, misplaced }) =>
      `  ${key}: ${effect}${misplaced === null ? '' : ` (found in ${misplaced}, where the server does not read it)`}`,
  );
  return [
    `${titleOf(rollout)}: ${rollout.normalised.source}, ${events(rollout.events)}`,
    ...fields,
    ...warningsOf(rollout).map((text) => `  ! ${text}`),
    ...(missing.length === 0 ? ['The upload has all recommended fields.'] : ['Missing recommended fields:', ...missing]),
  ];
}

/** The result as plain text, without the content of the upload. */
export function reportOf(result: CheckResult): string {
  const problems = result.problems.map(({ target, text }) => `  ${target}: ${text}`);
  return [verdictOf(result), ...problems, ...result.rollouts.flatMap((rollout) => ['', ...linesOf(rollout)])].join('\n');
}

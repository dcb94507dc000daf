import { formatCount, UNKNOWN } from '../format/number.ts';
import { fieldsOf, missingOf, oddities } from './fields.ts';
import type { Checked, CheckedRollout } from './read.ts';

const events = (count: number) => `${formatCount(count)} ${count === 1 ? 'event' : 'events'}`;

/** What the route would answer, in one sentence. */
export function verdictOf({ status, kept, repeated, problems }: Checked): string {
  const refused = problems.length;
  if (status !== 200) return `Refused with ${status}: nothing would be kept.`;
  const parts = [`${events(kept)} would be kept`];
  if (refused > 0) parts.push(`${formatCount(refused)} refused`);
  if (repeated > 0) parts.push(`${formatCount(repeated)} repeated`);
  return `Answered with 200: ${parts.join(', ')}.`;
}

export const titleOf = ({ start, result }: CheckedRollout): string =>
  start === null ? `Rollout ${result.id}, without its start event` : (result.rolloutName ?? `Rollout ${result.id}`);

function linesOf(rollout: CheckedRollout): string[] {
  const width = Math.max(...fieldsOf(rollout).map(({ name }) => name.length));
  const fields = fieldsOf(rollout).map(
    ({ name, value, provenance, rule, source }) =>
      `  ${name.padEnd(width)}  ${value ?? UNKNOWN}  (${provenance}${source === null ? '' : `, from ${source}`}: ${rule})`,
  );
  const missing = missingOf(rollout).map(
    ({ key, without, stray }) => `  ${key}: ${without}${stray === null ? '' : ` (it stands in ${stray}, where nothing reads it)`}`,
  );
  return [
    `${titleOf(rollout)}: ${rollout.result.source}, ${events(rollout.events)}`,
    ...fields,
    ...oddities(rollout).map((text) => `  ! ${text}`),
    ...(missing.length === 0 ? ['Everything of the recommended contract is there.'] : ['Missing of the recommended contract:', ...missing]),
  ];
}

/** The whole answer as plain text, for a message to somebody else. The upload itself is not in it. */
export function reportOf(checked: Checked): string {
  const problems = checked.problems.map(({ place, text }) => `  ${place}: ${text}`);
  return [verdictOf(checked), ...problems, ...checked.rollouts.flatMap((rollout) => ['', ...linesOf(rollout)])].join('\n');
}

import { formatReward } from '@palestra/kit/reward-text';
import type { StepMove } from '@palestra/metrics';
import { INTERRUPTED_STOPS, type MoveCause, STOP_REASONS } from '@palestra/protocol';
import { printText } from '@palestra/query';
import { wordOf } from '../../store/vocabulary-codes.ts';
import type { InvalidCalls } from './invalid-arguments.service.ts';
import type { PropertyRow } from './run-moves.sql.ts';

const count = (value: number): string => value.toLocaleString('en');
const MAX_NAME = 60;
const shortened = (name: string): string => (name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}…` : name);

/** `Reward fell by .310 at step 12`. */
export const moveInWords = ({ step, estimate: { difference } }: StepMove): string =>
  difference === 0
    ? `Reward did not change at step ${step}`
    : `Reward ${difference < 0 ? 'fell' : 'rose'} by ${formatReward(Math.abs(difference))} at step ${step}`;

/** `29 of 80 rollouts stopped with max_turns; 3 of 400 before`. `all`: the row of every rollout. */
export function propertyInWords(
  { kind, name, detail, now_rollouts: now, before_rollouts: before, calls }: PropertyRow,
  all: PropertyRow,
): string {
  if (calls) {
    const share = ({ errors, calls: made }: { errors: number; calls: number | null }) => `${count(errors)} of ${count(made ?? 0)}`;
    return `${shortened(name)} failed in ${share(calls.now)} calls; ${share(calls.before)} before`;
  }
  const rest = `; ${count(before)} of ${count(all.before_rollouts)} before`;
  return `${count(now)} of ${count(all.now_rollouts)} rollouts ${verbs(kind, name, detail)}${rest}`;
}

/** `accuse was called with invalid arguments in 17 of 24 checked calls; 1 of 120 before`. */
export function invalidInWords({ tool, calls: { now, before } }: InvalidCalls): string {
  const share = ({ errors, calls }: InvalidCalls['calls']['now']) => `${count(errors)} of ${count(calls)}`;
  return `${shortened(tool)} was called with invalid arguments in ${share(now)} checked calls; ${share(before)} before`;
}

/** `/suspect must be string`. */
export const violationInWords = ({ violation: { path, message } }: InvalidCalls): string => (path === '' ? message : `${path} ${message}`);

function verbs(kind: PropertyRow['kind'], name: string, detail: string | null): string {
  const limit = count(Number(name.slice(1)));
  switch (kind) {
    case 'stop':
      return `stopped with ${stopOf(name)}`;
    case 'interrupted':
      return 'were interrupted and have no reward';
    case 'version':
      return `ran version ${shortened(name)}${detail === null ? '' : ` of ${shortened(detail)}`}`;
    case 'environment':
      return `are of ${shortened(name)}`;
    case 'turns':
      return `took ${name.startsWith('>') ? 'more' : 'fewer'} than ${limit} turns`;
    default:
      return `have ${name.startsWith('>') ? 'more' : 'fewer'} than ${limit} tokens`;
  }
}

const stopOf = (code: string): string => wordOf(STOP_REASONS, Number(code)) ?? 'unknown';

/** The name of a property as an answer has it: stop reasons are stored as codes. */
export const nameOf = ({ kind, name }: PropertyRow): string => (kind === 'stop' ? stopOf(name) : name);

/** The clauses that find the rollouts with the property. */
export function clausesOf(row: PropertyRow): string[] {
  const { kind, name, detail } = row;
  switch (kind) {
    case 'tool_error':
      return [`tool.error:${printText(name)}`];
    case 'stop':
      return [`stop:${stopOf(name)}`];
    case 'interrupted':
      return [`stop:${INTERRUPTED_STOPS.join(',')}`];
    case 'version':
      return [...(detail === null ? [] : [`env:${printText(detail)}`]), `env.version:${printText(name)}`];
    case 'environment':
      return [`env:${printText(name)}`];
    case 'turns':
      return [`turns:${name}`];
    case 'tokens':
      return [`tok:${name}`];
    default:
      return [];
  }
}

/** `Its tasks earn .210 less than those before; 12 of 16 tasks are others`. `value`: what the choice of tasks explains. */
export function tasksInWords(value: number, tasks: { now: number; other: number; unseen: number }): string {
  const which = `${count(tasks.other)} of ${count(tasks.now)} tasks differ from those before`;
  const unseen = tasks.unseen === 0 ? '' : `, ${count(tasks.unseen)} of them never seen`;
  if (Math.abs(value) < 0.000_5) return `${which}${unseen}`;
  return `Its tasks earn ${formatReward(Math.abs(value))} ${value < 0 ? 'less' : 'more'} than those before; ${which}${unseen}`;
}

/** `Reward fell by .310 at step 12: accuse failed in 29 of 80 calls; 2 of 400 before.` */
export const adviceOf = (text: string, cause: Pick<MoveCause, 'text'> | undefined): string =>
  cause ? `${text}: ${cause.text.slice(0, 1).toLowerCase()}${cause.text.slice(1)}.` : `${text}. No single cause stands out.`;

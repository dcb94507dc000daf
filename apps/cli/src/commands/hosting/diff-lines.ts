import type { VersionDiff } from '@palestra/protocol';
import { coloured } from '../../colour.ts';
import { printable } from '../../printable.ts';

const SIGNS = { added: '+', removed: '-', changed: '~' } as const;
const COLOURS = { added: 'green', removed: 'red', changed: 'yellow' } as const;

/** A diff for people: what breaks first. */
export function diffLines(stream: { isTTY?: boolean }, { from, to, tools, tasks, prompt, rewards, breaking }: VersionDiff): string[] {
  const head = coloured(stream, 'bold', `Version ${from} to ${to}`);
  const sections = [
    breakingLines(stream, breaking),
    section(
      'tools',
      tools.map((one) => changeLine(stream, one)),
    ),
    section(
      'tasks',
      tasks.map((one) => changeLine(stream, one)),
    ),
    section('prompt', prompt === null ? [] : promptLines(stream, prompt.from, prompt.to)),
    section('rewards', rewards === null ? [] : [rewardsText('removed', rewards.from), rewardsText('added', rewards.to)]),
  ].flat();
  return [head, ...(sections.length > 0 ? sections : ['no differences in tools, tasks, prompt and rewards'])];
}

/** Empty if nothing breaks. */
export const breakingLines = (stream: { isTTY?: boolean }, breaking: readonly string[]): string[] =>
  section(
    'breaks clients',
    breaking.map((text) => coloured(stream, 'red', `! ${printable(text)}`)),
  );

const section = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];

function changeLine(stream: { isTTY?: boolean }, { name, change, detail }: VersionDiff['tools'][number]): string {
  const text = `${SIGNS[change]} ${printable(name)}${detail === '' ? '' : `: ${printable(detail)}`}`;
  return coloured(stream, COLOURS[change], text);
}

/** The lines that only one of the prompts has; both prompts if that says nothing, as for another order of lines. */
function promptLines(stream: { isTTY?: boolean }, from: string, to: string): string[] {
  const [before, after] = [from.split('\n'), to.split('\n')];
  const marked = (change: 'added' | 'removed', lines: readonly string[]) =>
    lines.map((line) => coloured(stream, COLOURS[change], `${SIGNS[change]} ${printable(line)}`.trimEnd()));
  const gone = before.filter((line) => !after.includes(line));
  const come = after.filter((line) => !before.includes(line));
  const hasOnly = gone.length + come.length > 0;
  return [...marked('removed', hasOnly ? gone : before), ...marked('added', hasOnly ? come : after)];
}

const rewardsText = (change: 'added' | 'removed', rewards: readonly (number | null)[]): string =>
  `${SIGNS[change]} ${rewards.map((reward) => reward ?? 'none').join(', ') || 'no call'}`;

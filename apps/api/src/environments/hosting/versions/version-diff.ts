import { toolsWithTerminal } from '@palestra/environment-kit';
import type { EnvironmentDiscoveryView, JsonValue, ToolSpec, VersionDiff } from '@palestra/protocol';
import { canonicalJson } from '../../task-sets/canonical-json.ts';
import type { Probe } from '../probe/probe.ts';
import { compareArguments } from './schema-change.ts';

type Change = VersionDiff['tools'][number];
type Variant = EnvironmentDiscoveryView['variants'][number];

/** What is known of a version. Null: its server was never reached, or it was not deployed here. */
export interface ComparedVersion {
  number: number;
  discovery: EnvironmentDiscoveryView | null;
  probe: Probe | null;
}

/** What a version changes for clients of another one. */
export function diffVersions(from: ComparedVersion, to: ComparedVersion): VersionDiff {
  const [before, after] = [from.discovery?.variants ?? [], to.discovery?.variants ?? []];
  const breaking: string[] = [];
  const tools = [...diffTools(before, after, breaking)];
  const tasks = [...diffTasks(before, after, { from: from.probe, to: to.probe }, breaking)];
  const [prompt, rewards] = [
    [from.probe?.prompt ?? '', to.probe?.prompt ?? ''],
    [from.probe?.rewards ?? [], to.probe?.rewards ?? []],
  ] as const;
  const isProbed = from.probe !== null && to.probe !== null;
  return {
    from: from.number,
    to: to.number,
    tools,
    tasks,
    prompt: isProbed && prompt[0] !== prompt[1] ? { from: prompt[0], to: prompt[1] } : null,
    rewards: isProbed && JSON.stringify(rewards[0]) !== JSON.stringify(rewards[1]) ? { from: rewards[0], to: rewards[1] } : null,
    breaking,
  };
}

function* diffTools(before: readonly Variant[], after: readonly Variant[], breaking: string[]): Generator<Change> {
  const labelOf = labels(before, after);
  for (const variant of before) {
    const now = after.find(({ name }) => name === variant.name);
    if (now === undefined) breaking.push(`The environment ${JSON.stringify(variant.name)} was removed.`);
    const known = new Map(toolsWithTerminal(now?.tools ?? { tools: [] }).map((tool) => [tool.name, tool]));
    for (const tool of toolsWithTerminal(variant.tools)) {
      const name = labelOf(variant.name, tool.name);
      const other = known.get(tool.name);
      known.delete(tool.name);
      if (other !== undefined) yield* diffTool(name, tool, other, breaking);
      else {
        yield { name, change: 'removed', detail: firstLine(tool.description) };
        breaking.push(`The tool ${JSON.stringify(name)} was removed.`);
      }
    }
    for (const tool of known.values())
      yield { name: labelOf(variant.name, tool.name), change: 'added', detail: firstLine(tool.description) };
  }
  for (const variant of after.filter(({ name }) => !before.some((one) => one.name === name)))
    for (const tool of toolsWithTerminal(variant.tools))
      yield { name: labelOf(variant.name, tool.name), change: 'added', detail: firstLine(tool.description) };
}

function* diffTool(name: string, from: ToolSpec, to: ToolSpec, breaking: string[]): Generator<Change> {
  const changes = compareArguments(from.input_schema, to.input_schema);
  for (const { text, isBreaking } of changes) if (isBreaking) breaking.push(`Tool ${JSON.stringify(name)}: ${text}.`);
  const parts = changes.map(({ text }) => text);
  if (from.description !== to.description) parts.push('the description changed');
  const isSame = canonicalJson(from as unknown as JsonValue) === canonicalJson(to as unknown as JsonValue);
  if (parts.length > 0) yield { name, change: 'changed', detail: parts.join('; ') };
  else if (!isSame) yield { name, change: 'changed', detail: 'the schema changed' };
}

function* diffTasks(
  before: readonly Variant[],
  after: readonly Variant[],
  probes: { from: Probe | null; to: Probe | null },
  breaking: string[],
): Generator<Change> {
  const labelOf = labels(before, after);
  for (const variant of before) {
    const splits = after.find(({ name }) => name === variant.name)?.splits ?? [];
    for (const { name: split, num_tasks: count } of variant.splits) {
      const name = labelOf(variant.name, split);
      const now = splits.find((one) => one.name === split);
      if (now === undefined) {
        yield { name, change: 'removed', detail: tasksText(count) };
        breaking.push(`The split ${JSON.stringify(name)} was removed.`);
      } else if (count !== now.num_tasks) {
        yield { name, change: 'changed', detail: `${tasksText(count)}, now ${tasksText(now.num_tasks)}` };
        if (count !== null && now.num_tasks !== null && now.num_tasks < count)
          breaking.push(`The split ${JSON.stringify(name)} has ${now.num_tasks} tasks instead of ${count}.`);
      } else if (isOther(probes, variant.name, split)) {
        yield { name, change: 'changed', detail: `${tasksText(count)}, some of the first of them differ` };
      }
    }
  }
  for (const variant of after)
    for (const { name: split, num_tasks: count } of variant.splits)
      if (!before.some(({ name, splits }) => name === variant.name && splits.some((one) => one.name === split)))
        yield { name: labelOf(variant.name, split), change: 'added', detail: tasksText(count) };
}

/** With the name of the variant where there are several. */
function labels(before: readonly Variant[], after: readonly Variant[]): (variant: string, name: string) => string {
  const isAlone = new Set([...before, ...after].map(({ name }) => name)).size <= 1;
  return (variant, name) => (isAlone ? name : `${variant}/${name}`);
}

/** Whether the probes of both versions read other tasks. */
const isOther = ({ from, to }: { from: Probe | null; to: Probe | null }, variant: string, split: string): boolean =>
  from !== null && to !== null && digestIn(from, variant, split) !== digestIn(to, variant, split);
const digestIn = (probe: Probe, variant: string, split: string): string | undefined =>
  probe.tasks.find((one) => one.variant === variant && one.split === split)?.digest;

const tasksText = (count: number | null): string =>
  count === null ? 'an unknown number of tasks' : count === 1 ? '1 task' : `${count} tasks`;
const firstLine = (text: string): string => text.split('\n', 1)[0]!.slice(0, 200);

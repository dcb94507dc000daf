import { type Command, Option } from 'commander';
import { OUTPUT_FORMATS } from '../output-format.ts';
import { UsageError } from '../server-settings.ts';

const examples = new WeakMap<Command, readonly string[]>();

/** Examples of a command: command lines, each with an optional `# comment`. They are part of its help and of docs/cli.md, and tests parse them. */
export function addExamples(command: Command, ...lines: string[]): Command {
  examples.set(command, lines);
  return command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}`);
}

export const examplesOf = (command: Command): readonly string[] => examples.get(command) ?? [];

const defaults = new WeakMap<Command, Command>();

/** Adds a command that runs without its name, too: `palestra runs` is `palestra runs list`. */
export function addDefault(group: Command, command: Command): void {
  defaults.set(group, command);
  group.addCommand(command, { isDefault: true });
}

export const defaultOf = (group: Command): Command | undefined => defaults.get(group);

/** `-o, --output`, for every command that prints data. */
export const addOutput = (command: Command): Command =>
  command.addOption(new Option('-o, --output <format>', 'output format').choices(OUTPUT_FORMATS).default('table'));

/** The action of a command, whose module is loaded when the command runs. */
export const lazy =
  <Arguments extends unknown[]>(load: () => Promise<(...values: Arguments) => void | Promise<void>>) =>
  async (...values: Arguments): Promise<void> =>
    (await load())(...values);

export const collect = (value: string, earlier: string[] = []): string[] => [...earlier, value];

/** Parses a whole number of at least 1. Throws `UsageError`. */
export function positive(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new UsageError(`Invalid number "${text}". Expected a whole number of at least 1.`);
  return value;
}

/** Parses a finite number. Throws `UsageError`. */
export function decimal(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value)) throw new UsageError(`Invalid number "${text}".`);
  return value;
}

/** Parses the seed of a shuffle. Throws `UsageError`. */
export function seed(text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value > MAX_SEED)
    throw new UsageError(`Invalid seed "${text}". Expected a whole number from 0 to ${MAX_SEED}.`);
  return value;
}

const MAX_SEED = 0xffff_ffff;

export const ENVIRONMENT_ARGUMENT = 'environment, or its name in your namespace';

/** The commands below `command` that users see, without itself, depth first. */
export function visibleCommands(command: Command): Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .flatMap((one) => (one.parent === null ? [] : [one, ...visibleCommands(one)]));
}

/** `palestra env init` for the command `init`. */
export const pathOf = (command: Command): string => (command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name());

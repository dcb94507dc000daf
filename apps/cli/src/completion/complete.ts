import type { Argument, Command, Option } from 'commander';
import { defaultOf } from '../program/define.ts';

/** A value that can replace the word at the cursor. */
export interface Candidate {
  value: string;
  description: string;
}

/** What the server knows, for values that are no part of the command tree. Rejects if it does not answer in time. */
export interface NameSource {
  environments(): Promise<string[]>;
  runs(): Promise<string[]>;
}

/** Candidates, or `files`: the shell completes names of files. */
export type Completion = 'files' | Candidate[];

/** What follows in a command line: a word of a command, or a value of an option. */
interface Position {
  command: Command;
  /** The words that are arguments of the command. */
  operands: number;
  /** The option whose value the word at the cursor is. */
  option: Option | null;
}

/** Candidates for the last of `words`, which are the words after `palestra` up to the cursor. */
export async function complete(program: Command, words: readonly string[], names: NameSource): Promise<Completion> {
  if (words[0] === 'help' && words.length > 1) return complete(program, words.slice(1), names);
  const joined = joinValues(words);
  const current = joined.words.at(-1) ?? '';
  const position = positionOf(program, joined.words.slice(0, -1));
  const [, name, typed] = /^(--[^=]+)=(.*)$/.exec(current) ?? [];
  if (name !== undefined) {
    const option = optionsOf(position.command).find((one) => isNamed(one, name));
    const values = option ? await valuesOf(option, names) : [];
    // Bash has its own word for the value, the other shells replace the whole word.
    const prefix = joined.isSplit ? '' : `${name}=`;
    return values === 'files' ? values : matching(values, typed!).map((one) => ({ ...one, value: prefix + one.value }));
  }
  if (position.option !== null) return matching(await valuesOf(position.option, names), current);
  if (current.startsWith('-')) return matching(optionsOf(position.command).flatMap(candidateOf), current);
  const commands = matching(position.operands === 0 ? subcommandsOf(position.command) : [], current);
  const argument = argumentAt(position);
  const values = argument ? matching(await valuesOf(argument, names), current) : [];
  if (values === 'files') return commands.length > 0 ? commands : values;
  return [...commands, ...values];
}

/** Bash passes `--option=value` as three words: joins them. `isSplit`: the last word is such a value. */
function joinValues(words: readonly string[]): { words: string[]; isSplit: boolean } {
  const joined: string[] = [];
  let isSplit = false;
  for (const [at, word] of words.entries()) {
    const before = words[at - 1];
    const isEquals = word === '=' && before?.startsWith('--') === true;
    const isValue = before === '=' && words[at - 2]?.startsWith('--') === true;
    isSplit = isEquals || isValue;
    if (isSplit) joined[joined.length - 1] += word;
    else joined.push(word);
  }
  return { words: joined, isSplit };
}

function positionOf(program: Command, words: readonly string[]): Position {
  let command = program;
  let operands = 0;
  let option: Option | null = null;
  let onlyOperands = false;
  for (const word of words) {
    if (option !== null) {
      option = null;
      continue;
    }
    if (word === '--' || onlyOperands) {
      if (onlyOperands) operands += 1;
      onlyOperands = true;
    } else if (word.startsWith('-')) {
      const found = optionsOf(command).find((one) => isNamed(one, word));
      option = found && takesValue(found) ? found : null;
    } else {
      const next = operands === 0 ? command.commands.find((one) => one.name() === word || one.aliases().includes(word)) : undefined;
      if (next) command = next;
      else operands += 1;
    }
  }
  return { command, operands, option };
}

const isNamed = ({ short, long }: Option, word: string): boolean => word === short || word === long;
const takesValue = (option: Option): boolean => option.required || option.optional;

/** The options of a command, of its default command, and those of the program. */
function optionsOf(command: Command): Option[] {
  const chain = [defaultOf(command), command, ...(command.parent ? [rootOf(command)] : [])];
  const options = chain.flatMap((one) => (one ? one.createHelp().visibleOptions(one) : []));
  return options.filter((one, at) => options.findIndex(({ long }) => long === one.long) === at);
}

const rootOf = (command: Command): Command => (command.parent ? rootOf(command.parent) : command);

function subcommandsOf(command: Command): Candidate[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .map((one) => ({ value: one.name(), description: one.description() }));
}

const candidateOf = ({ long, short, description }: Option): Candidate[] => [{ value: long ?? short!, description }];

function argumentAt({ command, operands }: Position): Argument | undefined {
  const { registeredArguments: registered } = defaultOf(command) ?? command;
  const last = registered.at(-1);
  return registered[operands] ?? (last?.variadic === true ? last : undefined);
}

/** By the choices of an option or an argument, else by its name in the help. */
async function valuesOf(one: Option | Argument, names: NameSource): Promise<Completion> {
  if (one.argChoices) return one.argChoices.map((value) => ({ value, description: '' }));
  const name = 'flags' in one ? (/[<[]([^\]>.]+)/.exec(one.flags)?.[1] ?? '') : one.name();
  if (name === 'owner/name') return (await names.environments()).map((value) => ({ value, description: 'environment' }));
  if (/^runs?$/.test(name)) return (await names.runs()).map((value) => ({ value, description: 'run' }));
  return /file|folder|path/.test(name) ? 'files' : [];
}

function matching<T extends Completion>(candidates: T, typed: string): T {
  return candidates === 'files' ? candidates : (candidates.filter(({ value }) => value.startsWith(typed)) as T);
}

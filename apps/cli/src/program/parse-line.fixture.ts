import type { Command } from 'commander';
import { buildProgram } from './program.ts';

/** The words of the call of `palestra` in a line of a shell, without what follows a pipe, a redirection or a comment. */
export function wordsOf(line: string): string[] {
  const call = /(?:^|[\s(])palestra(?: --)? (.*)$/.exec(line)?.[1];
  if (call === undefined) throw new Error(`no call of palestra in: ${line}`);
  const words: string[] = [];
  for (const [token, single, double, escaped] of call.matchAll(/'([^']*)'|"((?:[^"\\]|\\.)*)"|(?:\\(.))|[|>#;&)]|\s+|[^\s'"|>;&)]+/g)) {
    if (/^\s/.test(token)) words.push('');
    else if (/^[|>;&)]$/.test(token) || (token.startsWith('#') && (words.at(-1) ?? '') === '')) break;
    else words.push((words.pop() ?? '') + (single ?? double?.replaceAll(/\\(.)/g, '$1') ?? escaped ?? token));
  }
  return words.filter((word) => word !== '');
}

/** Parses words as the command line does, without running the command. Returns that command. Throws what commander and our parsers throw. */
export async function parse(words: readonly string[]): Promise<Command> {
  const program = buildProgram();
  let called: Command | undefined;
  const stub = (command: Command) => {
    command.configureOutput({ writeOut: () => {}, writeErr: () => {} });
    if (command.commands.length === 0)
      command.action(() => {
        called = command;
      });
    command.commands.forEach(stub);
  };
  stub(program);
  await program.parseAsync(words, { from: 'user' });
  if (called === undefined) throw new Error(`no command ran for: ${words.join(' ')}`);
  return called;
}

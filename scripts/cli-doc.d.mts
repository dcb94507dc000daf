import type { Command } from 'commander';

export interface CliDocSource {
  program: Command;
  examplesOf(command: Command): readonly string[];
  pathOf(command: Command): string;
  /** The command that runs without its name. */
  defaultOf(group: Command): Command | undefined;
  visibleCommands(command: Command): Command[];
  exitCodes: readonly (readonly [code: number, meaning: string])[];
}

export function renderCli(source: CliDocSource): string;

import { Command } from 'commander';
import { addExamples, addOutput, collect, lazy, positive } from './define.ts';
import { portOf, secondsOf } from './option-values.ts';
import { UsageError } from '../server-settings.ts';

/** The options of an environment of a Python library. They have no defaults here: those are in `python -m palestra.serve --help`. */
export const addLibraryOptions = (command: Command): Command =>
  command
    .option('--split-size <count>', 'library: tasks of each split (default: those of the library, else 1000)', positive)
    .option('--seed <number>', 'library: seed of the first task (default: 0)', wholeNumber)
    .option('--set <name=value>', 'library: an argument for the library, as JSON or text; repeatable', collect)
    .option('--data <split=file>', 'library: tasks of a split, for skyrl-gym; repeatable', collect)
    .option('--workers <count>', 'library: processes that run it (default: one per core, at most 4)', positive)
    .option('--max-sessions <count>', 'library: open sessions (default: 1000)', positive)
    .option('--deadline <seconds>', 'library: time of one call (default: 60)', secondsOf);

export function servePythonCommand(): Command {
  const command = new Command('serve-python')
    .description('serve an environment of a Python library until Ctrl-C, as an ORS server')
    .argument('<spec>', 'reasoning-gym:NAME, textarena:ID, gem:ID, skyrl-gym:ID, verifiers:ID, verifiers-legacy:MODULE or inspect:TASK')
    .option('--port <port>', 'port (default: 8000); 0 for any free port', portOf)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--python <interpreter>', 'Python with the library (default: .venv/bin/python, $VIRTUAL_ENV, python3)')
    .action(lazy(async () => (await import('../commands/env/serve.ts')).servePython));
  return addExamples(
    addOutput(addLibraryOptions(command)),
    'palestra serve-python reasoning-gym:leg_counting --split-size 500',
    'palestra serve-python textarena:GuessTheNumber-v0 --port 9000',
    'palestra serve-python skyrl-gym:gsm8k --data train=train.jsonl --data test=test.jsonl',
  );
}

function wholeNumber(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0) throw new UsageError(`Invalid number "${text}". Expected a whole number of at least 0.`);
  return value;
}

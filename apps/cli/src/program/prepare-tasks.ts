import { Command, Option } from 'commander';
import { OUTPUT_FORMATS } from '../output-format.ts';
import { addExamples, collect, lazy, positive } from './define.ts';

/** `--output FILE` is the older spelling of `--out FILE`: a value that is no output format is the file. */
export function prepareTasksCommand(): Command {
  const command = new Command('prepare-tasks')
    .description('write tasks to a file of prompts that SkyRL trains on')
    .requiredOption('--env <owner/name>', 'environment; repeatable', collect)
    .option('--split <name>', 'split to read', 'train')
    .option('--out <file>', 'file to write: .parquet, else JSON lines (default: tasks.parquet)')
    .option('--max-tasks <count>', 'maximum tasks per environment', positive)
    .option(
      '--concurrency <count>',
      'open this many sessions at a time to read prompts (default: the service reads them, else 32)',
      positive,
    )
    .addOption(
      new Option('--prompt-format <format>', 'each prompt as text of JSON, or as a list of messages')
        .choices(['text', 'messages'])
        .default('text'),
    )
    // Without `choices`, which would refuse a file.
    .addOption(
      Object.assign(new Option('-o, --output <format>', 'output format of the summary').default('table'), {
        argChoices: [...OUTPUT_FORMATS],
      }),
    )
    .action(lazy(async () => (await import('../commands/prepare-tasks.ts')).prepareTasks));
  return addExamples(
    command,
    'palestra prepare-tasks --env palestra/whodunit --split train --out tasks.parquet',
    'palestra prepare-tasks --env palestra/ctf --env palestra/math --max-tasks 100 --out mixed.jsonl',
  );
}

import { TASK_ROW_FORMATS } from '@palestra/protocol';
import { Command, Option } from 'commander';
import { OUTPUT_FORMATS } from '../output-format.ts';
import { addExamples, collect, decimal, lazy, positive, seed } from './define.ts';

/** `--output FILE` is the older spelling of `--out FILE`: a value that is no output format is the file. */
export function prepareTasksCommand(): Command {
  const command = new Command('prepare-tasks')
    .description('write tasks to a data set that a trainer loads')
    .requiredOption('--env <owner/name>', 'environment; repeatable', collect)
    .option('--split <name>', 'split to read', 'train')
    .option('--out <file>', 'file to write: .parquet, else JSON lines (default: tasks.parquet; tasks.jsonl for nemo-gym and inspect)')
    .addOption(new Option('--format <trainer>', 'rows for the loader of this trainer').choices(TASK_ROW_FORMATS).default('skyrl'))
    .option('--min-reward <reward>', 'only tasks whose mean reward, in your scored rollouts, is at least this', decimal)
    .option('--max-reward <reward>', 'only tasks whose mean reward is at most this', decimal)
    .option('--min-rollouts <count>', 'only tasks with at least this many scored rollouts', positive)
    .option(
      '--exclude <split or file>',
      'leave out tasks with the same content as one of this owner/name:split, or with a task_key in this JSON lines file; repeatable',
      collect,
    )
    .option('--shuffle-seed <number>', 'shuffle the tasks of all environments; equal seeds, equal order', seed)
    .option('--max-tasks <count>', 'maximum tasks per environment, after all filters', positive)
    .option(
      '--concurrency <count>',
      'open this many sessions at a time to read prompts (default: the service reads them, else 32)',
      positive,
    )
    .addOption(
      new Option('--prompt-format <format>', "prompts of SkyRL's rows: text of JSON like its script, or a list of messages")
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
    'palestra prepare-tasks --env palestra/math --format trl --min-reward 0.1 --max-reward 0.9 --out hard.parquet',
    'palestra prepare-tasks --env palestra/math --format verl --exclude palestra/math:test --shuffle-seed 1 --out t.parquet',
  );
}

import { Command } from 'commander';
import { addExamples, addOutput, collect, ENVIRONMENT_ARGUMENT, lazy } from './define.ts';

const actions = () => import('../commands/tasks.ts');

export function tasksCommand(): Command {
  const tasks = new Command('tasks').description('manage uploaded tasks of an environment');
  const push = new Command('push')
    .description('upload task files (JSONL or Parquet), one per split; uploading the same content again changes nothing')
    .argument('<owner/name>', ENVIRONMENT_ARGUMENT)
    .argument('[files...]', 'files named like their split: train.jsonl, test-00000-of-00001.parquet')
    .option('--split <name=file>', 'a file for a split with another name; repeatable; NAME alone is for a single file', collect)
    .option('--type <name=type>', 'train, validation or test, if the name of the split is not a type; repeatable', collect)
    .action(lazy(async () => (await actions()).pushTasks));
  const list = new Command('list')
    .description('list task sets, newest first')
    .argument('<owner/name>', ENVIRONMENT_ARGUMENT)
    .action(lazy(async () => (await actions()).listTaskSets));
  tasks.addCommand(
    addExamples(
      addOutput(push),
      'palestra tasks push acme/guess train.jsonl test.jsonl',
      'palestra tasks push guess --split hard=more.parquet --type hard=test',
    ),
  );
  tasks.addCommand(addExamples(addOutput(list), 'palestra tasks list acme/guess'));
  return addExamples(tasks, 'palestra tasks push acme/guess train.jsonl test.jsonl', 'palestra tasks list acme/guess');
}

import { Command } from 'commander';
import { addDefault, addExamples, addOutput, lazy, positive } from './define.ts';

export function runsCommand(): Command {
  const runs = new Command('runs').description('list and finish runs');
  const list = new Command('list')
    .description('list runs, newest first')
    .option('--search <text>', 'runs whose name contains this text')
    .option('--limit <count>', 'maximum runs', positive, 20)
    .action(lazy(async () => (await import('../commands/runs.ts')).listRuns));
  const finish = new Command('finish')
    .description('mark a run as finished, so that no alert waits for more of it; a later upload continues the run')
    .argument('<run>', 'id or name')
    .action(lazy(async () => (await import('../commands/runs.ts')).finishRun));
  addDefault(runs, addExamples(addOutput(list), 'palestra runs list --search demo', 'palestra runs -o jsonl | jq .name'));
  runs.addCommand(addExamples(addOutput(finish), 'palestra runs finish demo-learner'));
  return addExamples(runs, 'palestra runs', 'palestra runs finish demo-learner');
}

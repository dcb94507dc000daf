import { formatReward } from '@palestra/kit/reward-text';
import { Command } from 'commander';
import { printable, printTable } from '../output.ts';
import { withClient } from '../settings.ts';
import { exportRolloutsCommand } from './export-rollouts.ts';
import { importRolloutsCommand } from './import-rollouts.ts';

export function runCommands(positive: (text: string) => number): Command[] {
  const runs = new Command('runs')
    .description('list runs, newest first')
    .option('--search <text>')
    .option('--limit <count>', '', Number, 20)
    .action(listRuns)
    .addCommand(
      new Command('finish')
        .description('mark a run as finished, so that its silence is no alert; new rollouts continue it')
        .argument('<run>', 'id or name')
        .action(finishRun),
    );
  const rollouts = new Command('rollouts')
    .description('list, export or import rollouts')
    .argument('<run id>')
    .option('--limit <count>', '', Number, 20)
    .action(listRollouts)
    .addCommand(exportRolloutsCommand(positive))
    .addCommand(importRolloutsCommand());
  return [runs, rollouts];
}

async function listRuns(options: { search?: string; limit: number }): Promise<void> {
  const { runs, total } = await withClient((client) => client.runs.list(options));
  printTable(
    ['id', 'name', 'rollouts', 'failed', 'mean reward', 'created'],
    runs.map((run) => [run.id, run.name, run.num_rollouts, run.num_errors, formatReward(run.avg_rollout_reward), run.created_at]),
  );
  process.stderr.write(`${runs.length} of ${total} runs\n`);
}

async function finishRun(run: string): Promise<void> {
  const { name } = await withClient((client) => client.runs.change(run, { finished: true }));
  process.stdout.write(`${printable(name)} is finished.\n`);
}

async function listRollouts(runId: string, options: { limit: number }): Promise<void> {
  const { rollouts, total } = await withClient((client) => client.runs.rollouts(runId, options));
  printTable(
    ['id', 'name', 'reward', 'turns', 'stop'],
    rollouts.map((rollout) => [rollout.id, rollout.rolloutName, formatReward(rollout.reward), rollout.turns, rollout.stop]),
  );
  process.stderr.write(`${rollouts.length} of ${total} rollouts\n`);
}

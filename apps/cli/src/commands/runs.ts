import { formatReward } from '@palestra/kit/reward-text';
import { aboutRun } from '../named-run.ts';
import { printable, type Printed, printList, printOne } from '../output.ts';
import { withClient } from '../settings.ts';

export async function listRuns(options: Printed & { search?: string; limit: number }): Promise<void> {
  const { search, limit } = options;
  const { runs, total } = await withClient((client) => client.runs.list({ search, limit }));
  await printList(
    options,
    runs,
    [
      ['id', ({ id }) => id],
      ['name', ({ name }) => name],
      ['rollouts', ({ num_rollouts }) => num_rollouts],
      ['failed', ({ num_errors }) => num_errors],
      ['mean reward', ({ avg_rollout_reward }) => formatReward(avg_rollout_reward)],
      ['created', ({ created_at }) => created_at],
    ],
    `${runs.length} of ${total} runs`,
  );
}

export async function finishRun(run: string, options: Printed): Promise<void> {
  const view = await withClient((client) => aboutRun(run, client.runs.change(run, { finished: true })));
  await printOne(options, view, () => void process.stdout.write(`${printable(view.name)} is finished.\n`));
}

export async function listRollouts(run: string, options: Printed & { limit: number }): Promise<void> {
  const { rollouts, total } = await withClient((client) => aboutRun(run, client.runs.rollouts(run, { limit: options.limit })));
  await printList(
    options,
    rollouts,
    [
      ['id', ({ id }) => id],
      ['name', ({ rolloutName }) => rolloutName],
      ['reward', ({ reward }) => formatReward(reward)],
      ['turns', ({ turns }) => turns],
      ['stop', ({ stop }) => stop],
    ],
    `${rollouts.length} of ${total} rollouts`,
  );
}

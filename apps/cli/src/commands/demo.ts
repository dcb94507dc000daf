import { formatReward } from '@palestra/kit/reward-text';
import { playGroup, type PalestraClient } from '@palestra/client';
import { type PlayerName, players } from '../demo/players.ts';
import { startProgress } from '../output.ts';
import { withClient } from '../settings.ts';

const ENVIRONMENT = 'palestra/whodunit';
const SPLIT = 'train';
const RUN = 'whodunit-demo';
const MAX_TURNS = 30;

/** The players of each step: two tasks per step, four samples per task. The mean reward of the run rises. */
const STEPS: PlayerName[][] = [
  ['gossip', 'daydreamer', 'hasty', 'gossip'],
  ['hasty', 'gossip', 'detective', 'daydreamer'],
  ['detective', 'hasty', 'gossip', 'detective'],
  ['detective', 'detective', 'hasty', 'detective'],
];
const TASKS_PER_STEP = 2;

/** Plays the demo through the client, like a trainer. Exit status 1 if an episode could not be played or stored. */
export async function demo(): Promise<void> {
  const startedAt = performance.now();
  const progress = startProgress('demo episodes');
  const rewards: number[] = [];
  let unscored = 0;
  const report = await withClient(async (client, signal) => {
    progress.total(STEPS.length * TASKS_PER_STEP * STEPS[0]!.length);
    for (const [step, cast] of STEPS.entries()) {
      const indexes = Array.from({ length: TASKS_PER_STEP }, (_, task) => step * TASKS_PER_STEP + task);
      const groups = await Promise.all(indexes.map((index) => playTask(client, step, cast, index, signal)));
      for (const sample of groups.flatMap((group) => group.samples)) {
        if (sample.scored) rewards.push(sample.reward);
        else progress.line(`An episode failed: ${sample.error.message}`);
        progress.step();
      }
      unscored += groups.reduce((sum, group) => sum + group.unscored, 0);
    }
    return client.rollouts.flush();
  }).finally(() => progress.stop());
  if (report.error) process.stderr.write(`palestra: ${report.lost} rollout events were lost: ${report.error.message}\n`);
  if (unscored > 0 || report.lost > 0) process.exitCode = 1;
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / Math.max(rewards.length, 1);
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  process.stdout.write(`Run ${RUN}: ${rewards.length} rollouts in ${seconds} s, mean reward ${formatReward(mean)}, ${unscored} unscored\n`);
}

function playTask(client: PalestraClient, step: number, cast: PlayerName[], index: number, signal: AbortSignal) {
  return playGroup(client, {
    environment: ENVIRONMENT,
    split: SPLIT,
    index,
    samples: cast.length,
    policy: (turn) => players[cast[turn.sample]!](turn),
    maxTurns: MAX_TURNS,
    signal,
    record: {
      runName: RUN,
      rolloutName: `palestra-whodunit-${SPLIT}-${index}`,
      step,
      runInfo: { model_name: 'scripted-policy', run_type: 'train', framework: 'palestra-demo', batch_size: TASKS_PER_STEP * cast.length },
      rolloutInfo: { current_step: step, harness: 'palestra demo' },
      metadata: { global_step: step },
    },
  });
}

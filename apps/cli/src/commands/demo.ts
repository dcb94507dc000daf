import { formatReward } from '@palestra/kit/reward-text';
import { PalestraApiError } from '@palestra/client';
import { DEMO_RUNS } from '@palestra/protocol';
import { playDemo } from '../demo/play-demo.ts';
import { SAMPLES } from '../demo/plan.ts';
import { startProgress } from '../progress.ts';
import { withClient } from '../settings.ts';

/**
 * Plays the demo through the client, like a trainer, or the rest of an interrupted one. Exit status 1 if rollouts were lost. An episode
 * that ends without a score is part of the demo.
 */
export async function demo({ exitWithParent = false }: { exitWithParent?: boolean } = {}): Promise<void> {
  // A server that was killed continues its demo at the next start. Its player must not do so, too.
  // `unref`: the open input does not keep a complete demo alive.
  if (exitWithParent)
    process.stdin
      .on('end', () => process.exit(1))
      .resume()
      .unref();
  const startedAt = performance.now();
  const progress = startProgress('demo episodes');
  const rewards = new Map<string, number[]>(DEMO_RUNS.map((run) => [run, []]));
  let unscored = 0;
  const report = await withClient(
    async (client, signal) => {
      await playDemo(
        client,
        {
          total: (groups) => progress.total(groups * SAMPLES),
          played: ({ run }, { samples }) => {
            for (const sample of samples) {
              if (sample.scored) rewards.get(run)!.push(sample.reward);
              else unscored += 1;
              progress.step();
            }
          },
        },
        signal,
      );
      return client.rollouts.flush();
    },
    // One batch at a time: a rollout whose end is stored is complete.
    { uploads: { concurrency: 1 } },
  )
    .catch((error: unknown) => {
      if (!(error instanceof PalestraApiError) || error.status !== 401) throw error;
      throw new Error('The API key of the demo was revoked.', { cause: error });
    })
    .finally(() => progress.stop());
  if (report.unsent > 0) {
    process.stderr.write(`palestra: ${report.unsent} rollout events could not be stored: ${report.error?.message}\n`);
    process.exitCode = 1;
  }
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const runs = [...rewards].map(([run, values]) => `${run}: ${values.length} scored rollouts, mean reward ${formatReward(mean(values))}`);
  process.stdout.write(`${runs.join('\n')}\n${unscored} unscored, ${seconds} s\n`);
}

const mean = (values: number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;

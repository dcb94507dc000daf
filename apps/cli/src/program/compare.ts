import { type CompareMetric, DENOMINATORS, KNOWN_PHASES } from '@palestra/protocol';
import { Command, Option } from 'commander';
import { type Condition, parseCondition, parseMetric } from '../commands/compare-conditions.ts';
import { UsageError } from '../server-settings.ts';
import { addExamples, addOutput, lazy } from './define.ts';

const collectMetric = (name: string, earlier: CompareMetric[] = []) => [...earlier, parseMetric(name)];
const collectCondition = (text: string, earlier: Condition[] = []) => [...earlier, parseCondition(text, parseMetric)];

export function compareCommand(): Command {
  const command = new Command('compare')
    .description('compare runs with the first one; exit code 5 if a condition is met')
    .argument('<runs...>', 'two to four runs, by name or id')
    .option('--steps <steps>', 'common (steps that every run has), all, or a range of common steps such as 10..20', parseSteps, 'common')
    .option('--metric <name>', 'show this metric only; repeatable', collectMetric)
    .option('--env <owner/name>', 'rollouts of this environment only')
    .addOption(new Option('--phase <phase>', 'phase (default: that with the most rollouts of the first run)').choices(KNOWN_PHASES))
    .addOption(new Option('--den <denominator>', 'which rollouts count').choices(DENOMINATORS).default('effective'))
    .option(
      '--fail-if <condition>',
      'exit with code 5 if this holds, such as "reward_mean<-0.02" or "success.low<-0.05"; repeatable',
      collectCondition,
    )
    .action(lazy(async () => (await import('../commands/compare.ts')).compareRuns));
  return addExamples(
    addOutput(command),
    'palestra compare demo-baseline demo-learner',
    'palestra compare baseline candidate --steps 10..20 --fail-if "reward_mean<-0.02"',
  );
}

function parseSteps(text: string): string {
  if (!/^(?:common|all|\d{1,9}(?:\.\.\d{0,9})?|\.\.\d{1,9})$/.test(text))
    throw new UsageError(`Invalid steps "${text}". Expected common, all, or a range such as 10..20.`);
  return text;
}

import { Command, Option } from 'commander';
import { parseCondition } from '../commands/compare-conditions.ts';
import { type EvalCondition, parseEvalMetric } from '../commands/eval/metrics.ts';
import { parseTasks } from '../commands/eval/tasks.ts';
import { UsageError } from '../server-settings.ts';
import { addExamples, addOutput, ENVIRONMENT_ARGUMENT, lazy, positive } from './define.ts';

const collectCondition = (text: string, earlier: EvalCondition[] = []) => [...earlier, parseCondition(text, parseEvalMetric)];

export function evalCommand(): Command {
  const command = new Command('eval')
    .description('play tasks of an environment with a model or a scripted player, and upload the rollouts as a run')
    .argument('<owner/name>', `${ENVIRONMENT_ARGUMENT}; owner/name@3 is its version 3`)
    .option('--model <name>', 'model of an OpenAI-compatible API (chat completions with tools)')
    .option('--base-url <url>', 'base URL of that API, such as http://127.0.0.1:8000/v1 (default: OPENAI_BASE_URL)')
    .option('--api-key-env <name>', 'variable with the key of that API (default: OPENAI_API_KEY)')
    .option('--player <name>', 'instead of a model: "random", or a player of a bundled environment, such as "expert" or "solve"')
    .option('--module <file>', 'module of an environment of your own, whose players --player names')
    .option('--split <name>', 'split (default: the first of type test, else the first)')
    .option('--variant <name>', 'variant (default: the first)')
    .addOption(
      new Option('-n, --tasks <tasks>', 'number of tasks of the split, or their indexes, such as 0,3,10..20')
        .argParser(parseTasks)
        .default({ count: 100 }, '100'),
    )
    .option('-k, --samples <count>', 'episodes of each task', positive, 1)
    .option('--concurrency <count>', 'episodes at the same time', positive, 8)
    .option('--run <run>', 'name of the run (default: of the environment, the player and the time)')
    .option('--resume', 'continue an interrupted run: play only the episodes that it lacks or that failed by infrastructure', false)
    .option('--max-turns <count>', 'replies of the model, or calls of the player (default: 10, or 1000 for a player)', positive)
    .option('--temperature <number>', 'temperature of the model (default: that of the API)', notNegative)
    .option('--max-tokens <count>', 'maximum tokens of one reply (default: that of the API)', positive)
    .option('--extra-body <json>', 'further fields of each request, such as \'{"top_p": 0.9}\'', parseFields)
    .option('--timeout <seconds>', 'deadline of one reply of the model', positive, 600)
    .option('--price-in <price>', 'price of a million prompt tokens, for the cost', notNegative)
    .option('--price-out <price>', 'price of a million generated tokens', notNegative)
    .option('--compare <run>', 'compare with an earlier run, paired by task')
    .option(
      '--fail-if <condition>',
      'exit code 5 if it is met, such as "reward_mean<0.6" or "pass_at_4.low<0.5"; repeatable',
      collectCondition,
    )
    .action(lazy(async () => (await import('../commands/eval/eval.ts')).evaluate));
  return addExamples(
    addOutput(command),
    'palestra eval palestra/ctf --player expert -n 20',
    'palestra eval palestra/math --model Qwen/Qwen3-8B --base-url http://127.0.0.1:8000/v1 -n 50 -k 4 --run qwen3-8b',
    'palestra eval palestra/math --model Qwen/Qwen3-8B --base-url http://127.0.0.1:8000/v1 -n 50 -k 4 --run qwen3-8b --resume',
    'palestra eval guess --model m --base-url http://127.0.0.1:8000/v1 --compare baseline --fail-if "reward_mean<0.6"',
  );
}

function notNegative(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value) || value < 0)
    throw new UsageError(`Invalid number "${text}". Expected a number of at least 0.`);
  return value;
}

function parseFields(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // The error below says what is expected.
  }
  throw new UsageError(`Invalid --extra-body "${text}". Expected a JSON object.`);
}

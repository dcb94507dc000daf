import { Command } from 'commander';
import { UsageError } from '../server-settings.ts';
import { addExamples, addOutput, ENVIRONMENT_ARGUMENT, lazy } from './define.ts';

export function setCommand(): Command {
  const command = new Command('set')
    .description('set timeouts, capacity and guarantees for the sessions of an environment; other settings stay')
    .argument('<owner/name>', ENVIRONMENT_ARGUMENT)
    .option('--capacity <count>', 'concurrent sessions per replica of the environment, or "none"', readCapacity)
    .option('--heartbeat <seconds>', 'end a session after this time without ping or request', readSeconds)
    .option('--idle <seconds>', 'end a session after this time without a request other than ping', readSeconds)
    .option('--setup <seconds>', 'how long a session may take until it has its prompt', readSeconds)
    .option('--call <seconds>', 'how long one call of a tool may take', readSeconds)
    .option('--silence <seconds>', 'time without data after which an ORS server counts as dead', readSeconds)
    .option('--deterministic', 'the same task and calls give the same results, so sessions survive their process')
    .option('--no-deterministic', 'the same calls can give other results')
    .option('--idempotent <tools>', 'comma-separated tools that can run again if their outcome is unknown', (text) =>
      text.split(',').filter(Boolean),
    )
    .option('--reset', 'remove all earlier settings first', false)
    .action(lazy(async () => (await import('../commands/environment-policy.ts')).setPolicy));
  return addExamples(
    addOutput(command),
    'palestra env set acme/guess --capacity 8 --call 30',
    'palestra env set guess --reset --deterministic',
  );
}

function readCapacity(text: string): number | 'none' {
  if (text === 'none') return text;
  if (!/^[1-9]\d*$/.test(text)) throw new UsageError(`Invalid --capacity "${text}". Expected a count or "none".`);
  return Number(text);
}

function readSeconds(text: string): number {
  const seconds = Number(text);
  if (!Number.isFinite(seconds) || seconds <= 0) throw new UsageError(`Invalid time "${text}". Expected a number of seconds above 0.`);
  return seconds;
}

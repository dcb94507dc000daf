import { Command } from 'commander';
import type { SessionPolicyView } from '@palestra/protocol';
import { printable } from '../output.ts';
import { UsageError, withClient } from '../settings.ts';

interface Options {
  capacity?: number | 'none';
  heartbeat?: number;
  idle?: number;
  setup?: number;
  call?: number;
  silence?: number;
  deterministic?: boolean;
  idempotent?: string[];
  reset: boolean;
}

/** `palestra env set`: what its owner decides about the sessions of an environment. */
export function setCommand(): Command {
  return new Command('set')
    .description('timeouts, capacity and promises for the sessions of an environment; what is not named stays as it was')
    .argument('<owner/name>')
    .option('--capacity <count>', 'sessions at the same time per replica of the environment, or "none"', readCapacity)
    .option('--heartbeat <seconds>', 'a session ends after this long without ping or request', readSeconds)
    .option('--idle <seconds>', 'a session ends after this long without a request other than ping', readSeconds)
    .option('--setup <seconds>', 'a setup that takes longer has failed', readSeconds)
    .option('--call <seconds>', 'a call that takes longer is given up', readSeconds)
    .option('--silence <seconds>', 'an ORS server without a sign of life for so long is taken for dead', readSeconds)
    .option('--deterministic', 'same task, same calls, same results: sessions survive their process')
    .option('--no-deterministic', 'they do not')
    .option('--idempotent <tools>', 'tools that may run again when their outcome is unknown, with commas', (text) =>
      text.split(',').filter(Boolean),
    )
    .option('--reset', 'forget what was set before', false)
    .action(set);
}

async function set(environment: string, options: Options): Promise<void> {
  const view = await withClient(async (client) => {
    const before = options.reset ? null : (await client.environments.get(environment)).sessions;
    const after = { ...before, ...policyOf(options) };
    return client.environments.setSessions(environment, Object.keys(after).length === 0 ? null : after);
  });
  process.stdout.write(`${printable(JSON.stringify(view.sessions ?? {}))}\n`);
}

function policyOf({ capacity, heartbeat, idle, setup, call, silence, deterministic, idempotent }: Options): SessionPolicyView {
  const named = {
    capacity: capacity === 'none' ? null : capacity,
    heartbeat_timeout_s: heartbeat,
    idle_timeout_s: idle,
    setup_timeout_s: setup,
    call_timeout_s: call,
    silence_timeout_s: silence,
    deterministic,
    idempotent_tools: idempotent,
  };
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined));
}

function readCapacity(text: string): number | 'none' {
  if (text === 'none') return text;
  if (!/^[1-9]\d*$/.test(text)) throw new UsageError(`--capacity: a count or "none", not ${text}`);
  return Number(text);
}

function readSeconds(text: string): number {
  const seconds = Number(text);
  if (!Number.isFinite(seconds) || seconds <= 0) throw new UsageError(`not a time in seconds: ${text}`);
  return seconds;
}

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

/** `palestra env set`: the session policy of an environment. */
export function setCommand(): Command {
  return new Command('set')
    .description('set timeouts, capacity and guarantees for the sessions of an environment; other settings stay')
    .argument('<owner/name>')
    .option('--capacity <count>', 'concurrent sessions per replica of the environment, or "none"', readCapacity)
    .option('--heartbeat <seconds>', 'end a session after this time without ping or request', readSeconds)
    .option('--idle <seconds>', 'end a session after this time without a request other than ping', readSeconds)
    .option('--setup <seconds>', 'timeout of the setup', readSeconds)
    .option('--call <seconds>', 'timeout of a call', readSeconds)
    .option('--silence <seconds>', 'time without data after which an ORS server counts as dead', readSeconds)
    .option('--deterministic', 'the same task and calls give the same results, so sessions survive their process')
    .option('--no-deterministic', 'results can differ')
    .option('--idempotent <tools>', 'comma-separated tools that can run again if their outcome is unknown', (text) =>
      text.split(',').filter(Boolean),
    )
    .option('--reset', 'remove all earlier settings', false)
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
  const values = {
    capacity: capacity === 'none' ? null : capacity,
    heartbeat_timeout_s: heartbeat,
    idle_timeout_s: idle,
    setup_timeout_s: setup,
    call_timeout_s: call,
    silence_timeout_s: silence,
    deterministic,
    idempotent_tools: idempotent,
  };
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
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

import { HOSTING_PROVIDERS, ISOLATIONS } from '@palestra/protocol';
import { type Command, Option } from 'commander';
import { UsageError } from '../server-settings.ts';
import { variables } from './container-options.ts';
import { collect } from './define.ts';

/** Settings of the instances of an environment. What is absent stays as it is. */
export const addHostingOptions = (command: Command): Command =>
  command
    .option('--min-warm <count>', 'instances that also run without sessions; 0: none runs until a session waits', whole(0, 100))
    .option('--max <count>', 'most instances of a version', whole(1, 1_000))
    .option('--concurrency <count>', 'sessions of one instance', whole(1, 10_000))
    .option('--idle <seconds>', 'an instance without sessions ends after this time', whole(0, 86_400))
    .option('--drain <seconds>', 'an old instance with sessions ends after this time', whole(0, 86_400))
    .option('--start-timeout <seconds>', 'an instance that does not answer within this time has failed', whole(1, 3_600))
    .option('--cpus <number>', 'processors of one instance, such as 0.5', cpusOf)
    .option('--memory <size>', 'memory of one instance, such as 512m or 2g', megabytesOf)
    .option('--pids <count>', 'processes and threads of one instance', whole(16, 100_000))
    .option('--disk <size>', 'writable temporary files of one instance, such as 512m or 2g', megabytesOf)
    .option('--gpus <count>', 'GPUs of one instance', whole(0, 16))
    .option(
      '--egress <hosts>',
      'addresses that instances may connect to: "none", "open", or hosts such as pypi.org,*.acme.example',
      egressOf,
    )
    .option('--env <name=value>', 'variable of the instances; NAME alone passes the current value; repeatable', variables, [])
    .option('--remove-env <name>', 'remove a variable; repeatable', collect)
    .addOption(new Option('--isolation <level>', 'least isolation from the machine').choices(ISOLATIONS))
    .addOption(new Option('--provider <name>', 'where instances run (default: what the operator chose)').choices(HOSTING_PROVIDERS));

/** A parser of whole numbers from `low` to `high`. */
const whole =
  (low: number, high: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < low || value > high)
      throw new UsageError(`Invalid number "${text}". Expected a whole number from ${low} to ${high}.`);
    return value;
  };

function cpusOf(text: string): number {
  const value = Number(text);
  if (!(value >= 0.1 && value <= 256)) throw new UsageError(`Invalid --cpus "${text}". Expected a number from 0.1 to 256.`);
  return value;
}

/** Parses a size such as `512m` or `2g`. Returns megabytes. */
function megabytesOf(text: string): number {
  const [, number = '', unit = ''] = /^(\d+(?:\.\d+)?)([mg])b?$/i.exec(text) ?? [];
  const megabytes = Math.round(Number(number) * (unit.toLowerCase() === 'g' ? 1_024 : 1));
  if (number === '' || megabytes < 1) throw new UsageError(`Invalid size "${text}". Expected a number with a unit, such as 512m or 2g.`);
  return megabytes;
}

function egressOf(text: string): 'none' | 'open' | string[] {
  if (text === 'none' || text === 'open') return text;
  const hosts = text.split(',').map((host) => host.trim());
  const wrong = hosts.find((host) => !/^(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*$/i.test(host));
  if (wrong !== undefined)
    throw new UsageError(`Invalid host "${wrong}". Expected "none", "open", or hosts such as pypi.org,*.acme.example.`);
  return hosts;
}

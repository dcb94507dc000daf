import { stringify } from 'yaml';
import { printable, type Printed, printList, printOne } from '../../output.ts';
import { withClient } from '../../settings.ts';
import { changedSettings, type HostingFlags } from './changed-settings.ts';
import { environmentOnly } from './named-environment.ts';

export async function listInstances(target: string | undefined, options: Printed): Promise<void> {
  const list = await withClient(async (client) => client.hosting.instances(await environmentOnly(client, target)));
  if (options.output !== 'table') return printOne(options, list, () => {});
  const { instances, waiting, queue_ms } = list;
  const queue = queue_ms === null ? '' : `; median time in the queue in the last hour: ${seconds(queue_ms)}`;
  await printList(
    options,
    instances,
    [
      ['instance', ({ id }) => id],
      ['version', ({ version }) => version],
      ['state', ({ state }) => state],
      ['sessions', ({ sessions }) => sessions],
      ['cold start', ({ cold_start_ms }) => (cold_start_ms === null ? null : seconds(cold_start_ms))],
      ['cpus', ({ cpus }) => cpus?.toFixed(2) ?? null],
      ['memory', ({ memory_mb }) => (memory_mb === null ? null : `${Math.round(memory_mb)} MB`)],
      ['restarts', ({ restarts }) => restarts],
      ['provider', ({ provider }) => provider],
      ['started', ({ created_at }) => created_at],
      ['detail', ({ detail }) => detail],
    ],
    `${waiting} waiting sessions${queue}`,
  );
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;

export async function restartInstance(id: string, target: string | undefined, options: Printed): Promise<void> {
  const instance = await withClient(async (client) => client.hosting.restartInstance(await environmentOnly(client, target), id));
  await printOne(options, instance, () => void process.stdout.write(printable(`${instance.id}: ${instance.state}`) + '\n'));
}

/** Changes the settings that the options name, and shows all of them. */
export async function scale(target: string | undefined, options: Printed & HostingFlags): Promise<void> {
  const settings = await withClient(async (client) => {
    const environment = await environmentOnly(client, target);
    const changed = await changedSettings(options, () => client.hosting.settings(environment));
    return changed === null ? client.hosting.settings(environment) : client.hosting.setSettings(environment, changed);
  });
  await printOne(options, settings, () => {
    for (const line of stringify(settings, { lineWidth: 0 }).split('\n').filter(Boolean)) process.stdout.write(`${printable(line)}\n`);
  });
}

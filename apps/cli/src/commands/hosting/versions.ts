import { PalestraApiError, type PalestraClient } from '@palestra/client';
import type { ChannelView, VersionDiff } from '@palestra/protocol';
import { EXIT } from '../../exit-codes.ts';
import { printable, type Printed, printList, printOne } from '../../output.ts';
import { UsageError, withClient } from '../../settings.ts';
import { diffLines, breakingLines } from './diff-lines.ts';
import { environmentOnly, namedVersion } from './named-environment.ts';

export async function listVersions(target: string | undefined, options: Printed): Promise<void> {
  const { versions, channels } = await withClient(async (client) => {
    const environment = await environmentOnly(client, target);
    return { versions: await client.environments.versions(environment), channels: await client.hosting.channels(environment) };
  });
  const rows = versions.map((version) => ({ ...version, channels: channels.flatMap((channel) => useOf(channel, version.number)) }));
  await printList(options, rows, [
    ['version', ({ number }) => number],
    ['channels', ({ channels: uses }) => uses.join(', ')],
    ['source', ({ source }) => source.kind],
    ['tasks', ({ num_tasks }) => num_tasks],
    ['tools', ({ tools }) => tools.join(', ')],
    ['created', ({ created_at }) => created_at],
  ]);
}

/** How a channel uses a version: not, or such as `stable` or `stable (canary, 10 %)`. */
function useOf({ name, version, canary_version, canary_percent }: ChannelView, number: number): string[] {
  if (version === number) return [name];
  return canary_version === number ? [`${name} (canary, ${canary_percent} %)`] : [];
}

export async function listChannels(target: string | undefined, options: Printed): Promise<void> {
  const channels = await withClient(async (client) => client.hosting.channels(await environmentOnly(client, target)));
  await printList(options, channels, [
    ['channel', ({ name }) => name],
    ['version', ({ version }) => version],
    ['before', ({ previous_version }) => previous_version],
    ['canary', ({ canary_version, canary_percent }) => (canary_version === null ? null : `${canary_version} (${canary_percent} %)`)],
    ['changed', ({ updated_at }) => updated_at],
    ['reason', ({ reason }) => reason],
  ]);
}

export async function diffVersions(from: string, to: string, options: Printed & { failOnBreaking: boolean }): Promise<void> {
  const diff = await withClient(async (client) => {
    const first = await namedVersion(client, from);
    const second = /^@?\d+$/.test(to) ? Number(to.replace('@', '')) : await versionOf(client, to, first.environment);
    return client.hosting.diff(first.environment, first.version, second);
  });
  await printOne(
    options,
    diff,
    () =>
      void process.stdout.write(
        diffLines(process.stdout, diff)
          .map((line) => `${line}\n`)
          .join(''),
      ),
  );
  if (options.failOnBreaking && diff.breaking.length > 0) process.exitCode = EXIT.unmet;
}

async function versionOf(client: PalestraClient, text: string, environment: string): Promise<number> {
  const named = await namedVersion(client, text);
  if (named.environment !== environment) throw new UsageError(`"${text}" is not a version of ${environment}.`);
  return named.version;
}

/** Warns about what breaks clients of the version before. */
export async function promote(target: string, options: Printed & { percent: number; channel: string }): Promise<void> {
  const { percent, channel } = options;
  const { environment, view } = await withClient(async (client) => {
    const { environment: name, version } = await namedVersion(client, target);
    const diff = await diffWithChannel(client, name, channel, version);
    for (const line of breakingLines(process.stderr, diff?.breaking ?? [])) process.stderr.write(`${line}\n`);
    return { environment: name, view: await client.hosting.promote(name, version, { channel, percent }) };
  });
  await printChannel(options, environment, view);
}

/** Null if the channel is new or has this version, or if one of the versions has nothing to compare. */
async function diffWithChannel(client: PalestraClient, environment: string, channel: string, to: number): Promise<VersionDiff | null> {
  const from = (await client.hosting.channels(environment)).find(({ name }) => name === channel)?.version;
  if (from === undefined || from === to) return null;
  return client.hosting.diff(environment, from, to).catch((error: unknown) => {
    // `promote` reports what is wrong with the version.
    if (error instanceof PalestraApiError) return null;
    throw error;
  });
}

export async function rollback(target: string | undefined, options: Printed & { channel: string }): Promise<void> {
  const { environment, view } = await withClient(async (client) => {
    const name = await environmentOnly(client, target);
    return { environment: name, view: await client.hosting.rollback(name, options.channel) };
  });
  await printChannel(options, environment, view);
}

const printChannel = (options: Printed, environment: string, view: ChannelView): Promise<void> =>
  printOne(options, view, () => {
    const { name, version, canary_version, canary_percent } = view;
    const canary = canary_version === null ? '' : `, ${canary_percent} % of new sessions: version ${canary_version}`;
    process.stdout.write(printable(`${environment}@${name}: version ${version}${canary}`) + '\n');
  });

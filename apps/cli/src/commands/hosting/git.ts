import type { GitLinkView, LinkedGit } from '@palestra/protocol';
import { printable, type Printed, printOne } from '../../output.ts';
import { withClient } from '../../settings.ts';
import { environmentOnly } from './named-environment.ts';

export async function showGitLink(target: string | undefined, options: Printed): Promise<void> {
  const link = await withClient(async (client) => client.hosting.gitLink(await environmentOnly(client, target)));
  await printOne(options, link, () => {
    if (link === null) process.stderr.write('No git repository is linked. Link one with "palestra env git link URL".\n');
    else printLink(link);
  });
}

interface LinkFlags extends Printed {
  ref?: string;
  subdirectory?: string;
  channel: string;
  promote: boolean;
}

export async function linkGit(url: string, target: string | undefined, options: LinkFlags): Promise<void> {
  const { ref, subdirectory, promote, channel } = options;
  const body = { url, ref, subdirectory, channel: promote ? channel : null };
  const linked = await withClient(async (client) => client.hosting.linkGit(await environmentOnly(client, target), body));
  await printOne(options, linked, () => printLinked(linked));
}

export async function replaceGitSecret(target: string | undefined, options: Printed): Promise<void> {
  const linked = await withClient(async (client) => client.hosting.replaceGitSecret(await environmentOnly(client, target)));
  await printOne(options, linked, () => printLinked(linked));
}

export async function unlinkGit(target: string | undefined, options: Printed): Promise<void> {
  const environment = await withClient(async (client) => {
    const found = await environmentOnly(client, target);
    await client.hosting.unlinkGit(found);
    return found;
  });
  await printOne(options, { environment }, () => void process.stdout.write(`${printable(environment)}\n`));
}

function printLinked(linked: LinkedGit): void {
  printLink(linked);
  if (linked.secret === null) return;
  process.stdout.write(`secret: ${printable(linked.secret)}\n`);
  process.stderr.write('Add this webhook to the git server: content type JSON, event push. The secret is not shown again.\n');
}

function printLink({ url, ref, subdirectory, channel, webhook_url, pushed_at }: GitLinkView): void {
  const lines = [
    ['repository', url],
    ['branch', ref ?? 'the default branch'],
    ['folder', subdirectory ?? 'the root'],
    ['channel', channel ?? 'none'],
    ['last push', pushed_at ?? 'none'],
    ['webhook', webhook_url],
  ] as const;
  for (const [name, value] of lines) process.stdout.write(printable(`${name}: ${value}`) + '\n');
}

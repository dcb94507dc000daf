import type { DeployView } from '@palestra/protocol';
import { printable, type Printed, printList, printOne } from '../../output.ts';
import { withClient } from '../../settings.ts';
import { environmentOnly } from './named-environment.ts';

export async function listDeploys(target: string | undefined, options: Printed): Promise<void> {
  const deploys = await withClient(async (client) => client.hosting.deploys(await environmentOnly(client, target)));
  await printList(options, deploys, [
    ['deploy', ({ id }) => id],
    ['state', ({ state }) => state],
    ['source', sourceText],
    ['version', ({ version }) => version],
    ['channel', ({ channel }) => channel],
    ['author', ({ author }) => author],
    ['started', ({ created_at }) => created_at],
    ['seconds', secondsOf],
    ['error', ({ error }) => error?.detail ?? null],
  ]);
}

export async function cancelDeploy(id: string, options: Printed): Promise<void> {
  const deploy = await withClient((client) => client.hosting.cancelDeploy(id));
  await printOne(options, deploy, () => void process.stdout.write(`${printable(deploy.state)}\n`));
}

/** What was deployed, such as `folder`, an image, or a repository with its commit. */
function sourceText({ source, commit }: DeployView): string {
  const { kind, url, image, urls } = source as { kind: string; url?: unknown; image?: unknown; urls?: unknown };
  const what = kind === 'git' ? `${String(url)}${commit === null ? '' : `#${commit.slice(0, 7)}`}` : kind === 'image' ? image : urls;
  return what === undefined ? kind : String(what);
}

function secondsOf({ started_at: from, ended_at: to }: DeployView): number | null {
  return from === null || to === null ? null : Math.round((Date.parse(to) - Date.parse(from)) / 1_000);
}

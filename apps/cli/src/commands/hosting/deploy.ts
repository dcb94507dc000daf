import { setTimeout as sleep } from 'node:timers/promises';
import { PalestraApiError, type PalestraClient } from '@palestra/client';
import { cardOf, readManifest } from '@palestra/hosting';
import type { DeployView, EnvironmentDetails } from '@palestra/protocol';
import { environmentName } from '../../environment-name.ts';
import { InterruptedError } from '../../exit-codes.ts';
import { printable, type Printed, printOne } from '../../output.ts';
import { withClient } from '../../settings.ts';
import { parseName } from '../env/register.ts';
import { deployError, type LogPosition, showBuildLog } from './build-log.ts';
import { changedSettings, type HostingFlags } from './changed-settings.ts';
import { nameOfSource, type Source, type SourceFlags, sourceOf } from './deploy-source.ts';
import { endInterruptedDeploy } from './interrupted-deploy.ts';
import { uploadFolder } from './upload-folder.ts';

const QUEUE_NOTICE_MS = 2_000;

interface DeployFlags extends SourceFlags, HostingFlags, Printed {
  name?: string;
  channel: string;
  promote: boolean;
  public: boolean;
  detach: boolean;
}

/** Deploys and shows the build log until the deploy has ended. Ctrl-C before that cancels it. */
export async function deploy(folder: string | undefined, options: DeployFlags): Promise<void> {
  const source = sourceOf(folder, options);
  const name = options.name ?? (await nameOfSource(source));
  parseName(name);
  // Ctrl-C aborts these requests until there is a deploy, which it then cancels by another request.
  const requests = new AbortController();
  await withClient(
    async (client, interrupt) => {
      const abort = () => requests.abort(interrupt.reason);
      interrupt.addEventListener('abort', abort, { once: true });
      const started = await start(client, await environmentName(client, name), source, options, requests.signal);
      interrupt.removeEventListener('abort', abort);
      if (options.detach) return printDetached(options, started);
      const ended = await watch(client, started, interrupt);
      if (ended.state !== 'ready') throw await deployError(client, ended);
      await printReady(client, options, ended);
    },
    { signal: requests.signal },
  );
}

async function start(
  client: PalestraClient,
  environment: string,
  source: Source,
  options: DeployFlags,
  signal: AbortSignal,
): Promise<DeployView> {
  const known = await find(client, environment);
  await changeSettings(client, environment, known === null, options);
  const common = {
    channel: options.promote ? options.channel : null,
    create: true,
    private: !options.public,
    dockerfile: options.dockerfile,
  };
  if (source.kind !== 'folder') return client.hosting.deploy(environment, { ...common, source });
  const card = await cardOf(source.folder, await readManifest(source.folder));
  const started = await uploadFolder(client, environment, source.folder, { ...common, signal });
  if (card.description !== (known?.description ?? '') || card.readme !== (known?.readme_content ?? null))
    await client.environments.describe(environment, card);
  return started;
}

const find = (client: PalestraClient, environment: string): Promise<EnvironmentDetails | null> =>
  client.environments.get(environment).catch((error: unknown) => {
    if (error instanceof PalestraApiError && error.status === 404) return null;
    throw error;
  });

/** Sets the settings that the options name. A new environment is created for that, because its defaults depend on the server. */
async function changeSettings(client: PalestraClient, environment: string, isNew: boolean, options: DeployFlags): Promise<void> {
  const settings = await changedSettings(options, async () => {
    const [namespace, name] = environment.split('/') as [string, string];
    if (isNew) await client.environments.add({ namespace, name, isPrivate: !options.public, server: null });
    return client.hosting.settings(environment);
  });
  if (settings !== null) await client.hosting.setSettings(environment, settings);
}

async function watch(client: PalestraClient, started: DeployView, interrupt: AbortSignal): Promise<DeployView> {
  const position = { after: 0 };
  const shown = new AbortController();
  void noteQueue(client, started.id, position, shown.signal).catch(() => {});
  try {
    await showBuildLog(client, started.id, position, interrupt);
  } catch (error) {
    if (error instanceof InterruptedError) await endInterruptedDeploy(client, started, position, error);
    throw error;
  } finally {
    shown.abort();
  }
  return client.hosting.getDeploy(started.id);
}

/** Says why nothing is shown while a deploy waits for others. */
async function noteQueue(client: PalestraClient, id: string, position: LogPosition, signal: AbortSignal): Promise<void> {
  await sleep(QUEUE_NOTICE_MS, undefined, { signal });
  if (position.after > 0 || (await client.hosting.getDeploy(id, signal)).state !== 'queued') return;
  process.stderr.write('Waiting for other deploys of this service to end.\n');
}

const printDetached = (options: Printed, deploy: DeployView): Promise<void> =>
  printOne(options, deploy, () => {
    process.stdout.write(`${printable(deploy.id)}\n`);
    process.stderr.write(
      `${printable(deploy.environment)} is being deployed. Its log: palestra env logs -f --deploy ${printable(deploy.id)}\n`,
    );
  });

const printReady = (client: PalestraClient, options: Printed, deploy: DeployView): Promise<void> =>
  printOne(options, deploy, () => {
    const { environment, version, channel, reused } = deploy;
    process.stdout.write(`${printable(environment)}@${version}\n`);
    const origin = reused ? 'of the same source ' : '';
    const state = channel === null ? 'is ready. Sessions get it when it is promoted' : `is on the channel ${channel}`;
    process.stderr.write(printable(`Version ${version} ${origin}${state}: ${new URL(`/environments/${environment}`, client.url)}`) + '\n');
  });

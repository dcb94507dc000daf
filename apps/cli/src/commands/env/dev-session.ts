import { spawn } from 'node:child_process';
import path from 'node:path';
import { PalestraApiError, PalestraClient } from '@palestra/client';
import { cardOf, nameFrom, portOrFree, type Target } from '@palestra/hosting';
import { printable, type Printed, printOne } from '../../output.ts';
import { UsageError, withInterrupt } from '../../settings.ts';
import { noteUnpromoted } from '../../unpromoted-version.ts';
import { DevServer } from './dev-server.ts';
import { findOrStartService } from './dev-service.ts';
import { applyGuarantees, declaredGuarantees } from './guarantees.ts';
import { parseName, register } from './register.ts';
import { untilStopped } from './run.ts';
import { targetAt } from './target.ts';

interface DevOptions extends Printed {
  name?: string;
  port?: number;
  python?: string;
  open: boolean;
}

const DEFAULT_PORT = 8000;

/** Serves and shows the environment until Ctrl-C. */
export async function dev(argument: string, options: DevOptions): Promise<void> {
  const target = await targetAt(argument);
  if (target.kind === 'library') throw new UsageError(`${argument} has no files to reload. Use "palestra env push ${argument}".`);
  const name = options.name ?? nameFrom(target.manifest?.name ?? path.basename(target.folder));
  parseName(name);
  await withInterrupt(async (signal) => {
    const port = options.port || (await portOrFree(target.manifest?.port ?? DEFAULT_PORT));
    const server = new DevServer(target, { host: '127.0.0.1', port, python: options.python }, say);
    // An environment that does not load needs no service.
    await server.start();
    try {
      const service = await findOrStartService(target.folder, signal);
      try {
        await showEnvironment(service, target, name, `http://127.0.0.1:${port}`, options, signal);
        server.watch(signal);
        await untilStopped(signal);
      } finally {
        if (service.started) say('Stopping ...');
        await service.stop();
      }
    } finally {
      await server.stop();
    }
  });
}

const say = (text: string): void => void process.stderr.write(`${text}\n`);

/** Registers the environment and opens its playground. */
async function showEnvironment(
  { url, apiKey, started }: { url: string; apiKey: string; started: boolean },
  target: Target,
  name: string,
  address: string,
  { open, output }: DevOptions,
  signal: AbortSignal,
): Promise<void> {
  const client = new PalestraClient({ url, apiKey });
  try {
    const kind = target.kind === 'openenv' ? 'openenv' : 'remote';
    const card = await cardOf(target.folder, target.manifest);
    const registered = await register(client, parseName(name), { kind, url: address }, card, true);
    const declared = kind === 'remote' ? await declaredGuarantees(address, signal) : null;
    if (declared !== null) await applyGuarantees(client, registered.name, declared);
    const page = `/environments/${registered.name}/play`;
    const link = await client.signInLink(page).catch((error: unknown) => {
      // A key without the scope `keys` cannot sign a browser in.
      if (error instanceof PalestraApiError && error.status === 403) return new URL(page, url).href;
      throw error;
    });
    say(`${printable(registered.name)} is served at ${address} and shown by ${started ? 'a new service' : 'the service'} at ${url}.`);
    await noteUnpromoted(client, registered.name, registered.version);
    say('Save a file to reload the environment. Press Ctrl-C to stop.');
    const shown = { ...registered, url: address, service_url: url, service_started: started, playground_url: link };
    await printOne({ output }, shown, () => {
      process.stdout.write(`Playground (this link signs your browser in, once):\n  ${link}\n`);
    });
    if (open) openInBrowser(link);
  } finally {
    await client.close();
  }
}

/** Only on a desktop: a terminal of a person, and a display. */
function openInBrowser(link: string): void {
  const { platform, env } = process;
  const hasDisplay = platform !== 'linux' || env['DISPLAY'] !== undefined || env['WAYLAND_DISPLAY'] !== undefined;
  if (!process.stdout.isTTY || env['CI'] !== undefined || env['SSH_CONNECTION'] !== undefined || !hasDisplay) return;
  const [command, ...args] = { darwin: ['open'], win32: ['explorer.exe'] }[platform as string] ?? ['xdg-open'];
  spawn(command!, [...args, link], { stdio: 'ignore', detached: true })
    .on('error', () => {})
    .unref();
}

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { freePort } from '@palestra/hosting';
import { Command, Option } from 'commander';
import type { PalestraClient } from '@palestra/client';
import { looksLikeImage, nameOfImage } from '../../containers/image.ts';
import { printable } from '../../output.ts';
import { UsageError, withClient } from '../../settings.ts';
import { detectServer } from './detect.ts';
import {
  addContainerOptions,
  type ContainerFlags,
  type ImageSource,
  ofFolder,
  startContainer,
  watchContainer,
} from './container-options.ts';
import { portOf } from './options.ts';
import { type Card, cardOf, nameFrom, placeOf, register } from './register.ts';
import { runTarget, untilStopped } from './run.ts';
import { targetAt } from './target.ts';
import { baseUrl } from './validate-url.ts';

interface PushOptions extends ContainerFlags {
  name?: string;
  url?: string;
  image?: string;
  registryStyle?: string;
  port?: number;
  host: string;
  python?: string;
  public: boolean;
  detach: boolean;
}

const DETACHED_DEADLINE_MS = 120_000;

export function pushCommand(): Command {
  const command = new Command('push')
    .description('register an environment with the server: a folder, a running server, or an image')
    .argument('[path]', 'folder, or an image such as registry/owner/name:tag', '.')
    .option('--name <owner/name>', 'without: as openenv.yaml, the folder or the image is called, in your own namespace')
    .option('--url <url>', 'a server that runs already: ORS, OpenEnv or MCP, which it is asked; PATH gives name and README')
    .option('--image <reference>', 'an image, where PATH could be taken for a folder')
    .addOption(new Option('--registry-style <reference>', 'the same').hideHelp())
    .option('--port <port>', 'where to serve here (without: any free one)', portOf)
    .option('--host <address>', 'where to serve here, and where the server reaches it', '127.0.0.1')
    .option('--python <interpreter>', 'of an OpenEnv folder (without: .venv/bin/python, $VIRTUAL_ENV, python3)')
    .option('--public', 'visible to every organisation of the service, not to yours only', false)
    .option('--detach', 'leave what is served here running, and return', false);
  return addContainerOptions(command).action(push);
}

/** What is served from here stays in the foreground until Ctrl-C, unless it is detached. */
async function push(given: string, options: PushOptions): Promise<void> {
  const image = options.image ?? options.registryStyle ?? (!existsSync(given) && looksLikeImage(given) ? given : undefined);
  if (image !== undefined && options.url !== undefined) throw new UsageError('give an image or --url, not both');
  await withClient(async (client, signal) => {
    if (options.url !== undefined) return pushUrl(client, given, options.url, options);
    if (image === undefined) return pushFolder(client, given, options, signal);
    if (options.build) throw new UsageError(`--build takes a folder, and ${image} is an image`);
    return pushImage(client, { image }, options.name ?? nameFrom(nameOfImage(image)), null, options, signal);
  });
}

async function pushUrl(client: PalestraClient, given: string, url: string, options: PushOptions): Promise<void> {
  const base = baseUrl(url);
  if (!URL.canParse(base)) throw new UsageError(`not a URL: ${url}`);
  // A folder beside it may say what it is called; without one the name must be given.
  const target = await targetAt(given).catch(() => null);
  const called = options.name ?? target?.manifest?.name ?? (target === null ? undefined : path.basename(target.folder));
  if (called === undefined) throw new UsageError('give the environment a name: --name owner/name');
  const card = target === null ? null : await cardOf(target.folder, target.manifest);
  await registerServer(client, base, options.name ?? nameFrom(called), card, options);
}

async function pushFolder(client: PalestraClient, given: string, options: PushOptions, signal: AbortSignal): Promise<void> {
  const target = await targetAt(given);
  const name = options.name ?? nameFrom(target.manifest?.name ?? path.basename(target.folder));
  placeOf(name);
  const card = await cardOf(target.folder, target.manifest);
  if (options.build) {
    const { source, flags } = ofFolder(target, options);
    return pushImage(client, source, name, card, { ...options, ...flags }, signal);
  }
  const { host, python } = options;
  const port = options.port || (await freePort(host));
  if (options.detach) {
    const url = await serveDetached(given, host, port, python);
    return registerServer(client, url, name, card, options);
  }
  const { url, process: child } = await runTarget(target, { host, port, python }, signal);
  try {
    await registerServer(client, url, name, card, options);
    process.stderr.write(`${url} is served from here; Ctrl-C ends it\n`);
    await untilStopped(signal);
  } finally {
    await child.stop();
  }
}

async function pushImage(
  client: PalestraClient,
  source: ImageSource,
  name: string,
  card: Card | null,
  options: PushOptions,
  signal: AbortSignal,
): Promise<void> {
  const { host, detach } = options;
  const place = { environment: placeOf(name).name, host, port: options.port || (await freePort(host)), detach };
  const container = await startContainer(source, place, options, signal);
  let stays = false;
  try {
    await registerServer(client, container.url, name, card, options);
    stays = detach;
    process.stderr.write(`${container.url} is served ${detach ? `by the container ${container.name}` : 'from here; Ctrl-C ends it'}\n`);
    if (!detach) await watchContainer(container, signal);
  } finally {
    if (!stays) await container.remove();
  }
}

async function registerServer(client: PalestraClient, url: string, name: string, card: Card | null, options: PushOptions): Promise<void> {
  const place = placeOf(name);
  const kind = await detectServer(url).catch((error: unknown) => {
    const { cause, message } = error as Error;
    throw new Error(`${url} does not answer: ${cause instanceof Error && cause.message ? cause.message : message}`);
  });
  if (kind === null) throw new Error(`${url} answers, and speaks neither ORS nor OpenEnv nor MCP`);
  const { name: registered, version, changed } = await register(client, place, { kind, url }, card, !options.public);
  const what = { remote: 'an ORS server', openenv: 'an OpenEnv server', mcp: 'an MCP server' }[kind];
  process.stdout.write(`${printable(registered)}@${version}${changed ? '' : ': was on this server already'}\n`);
  process.stderr.write(`${url} is ${what}\n`);
}

/** `palestra env serve` in a session of its own; its words go to a file. */
async function serveDetached(given: string, host: string, port: number, python: string | undefined): Promise<string> {
  const log = path.join(tmpdir(), `palestra-env-${port}.log`);
  const words = openSync(log, 'w', 0o600);
  const args = ['env', 'serve', given, '--host', host, '--port', String(port), ...(python === undefined ? [] : ['--python', python])];
  const child = spawn(process.execPath, [process.argv[1]!, ...args], { detached: true, stdio: ['ignore', words, words] });
  const died = once(child, 'exit').then(() => {
    throw new Error(`the environment could not be served; see ${log}`);
  });
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  await Promise.race([died, answering(url)]);
  // Its end is its own business from here on.
  died.catch(() => {});
  child.unref();
  process.stderr.write(`process ${child.pid} serves ${url}; its log is ${log}\n`);
  return url;
}

async function answering(url: string): Promise<void> {
  for (const deadline = Date.now() + DETACHED_DEADLINE_MS; Date.now() < deadline;) {
    if (await fetch(`${url}/health`).catch(() => null)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${url} does not answer`);
}

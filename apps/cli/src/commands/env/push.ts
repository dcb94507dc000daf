import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, openSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  detectServer,
  type ServerKind,
  type Card,
  cardOf,
  freePort,
  type LibraryFlags,
  librarySpec,
  type LibrarySpec,
  nameFrom,
  type Target,
} from '@palestra/hosting';
import type { PalestraClient } from '@palestra/client';
import type { EnvironmentReport } from '@palestra/protocol';
import { looksLikeImage, nameOfImage } from '../../containers/image.ts';
import { validateModule } from '../../kit/validate-module.ts';
import { printable, type Printed, printOne } from '../../output.ts';
import { UsageError, withClient } from '../../settings.ts';
import { noteUnpromoted } from '../../unpromoted-version.ts';
import { applyGuarantees, declaredGuarantees } from './guarantees.ts';
import { type ContainerFlags, type ImageSource, folderSource, startContainer, watchContainer } from './container-options.ts';
import { parseName, register, type Registered } from './register.ts';
import { serverCard } from './server-card.ts';
import { runTarget, untilStopped } from './run.ts';
import { libraryFlags, targetAt } from './target.ts';
import { baseUrl } from './validate-url.ts';

interface PushOptions extends ContainerFlags, LibraryFlags, Printed {
  name?: string;
  url?: string;
  image?: string;
  registryStyle?: string;
  port?: number;
  host: string;
  python?: string;
  public: boolean;
  detach: boolean;
  report: boolean;
}

/** What a push did, for programs. */
interface Pushed extends Registered {
  url: string;
  kind: ServerKind;
  /** The process that keeps serving after this command. */
  pid: number | null;
  container: string | null;
  /** What the page of the environment shows; null if it was not validated. */
  report: EnvironmentReport | null;
}

const DETACHED_DEADLINE_MS = 120_000;

/** Serves in the foreground until Ctrl-C, unless detached. */
export async function push(argument: string, options: PushOptions): Promise<void> {
  const isImage = librarySpec(argument) === null && !existsSync(argument) && looksLikeImage(argument);
  const image = options.image ?? options.registryStyle ?? (isImage ? argument : undefined);
  if (image !== undefined && options.url !== undefined) throw new UsageError('Pass an image or --url, not both.');
  await withClient(async (client, signal) => {
    if (options.url !== undefined) return pushUrl(client, argument, options.url, options, signal);
    if (image === undefined) return pushFolder(client, argument, options, signal);
    if (options.build) throw new UsageError(`--build needs a folder, but ${image} is an image.`);
    return pushImage(client, { image }, options.name ?? nameFrom(nameOfImage(image)), null, options, signal);
  });
}

async function pushUrl(client: PalestraClient, folder: string, url: string, options: PushOptions, signal: AbortSignal): Promise<void> {
  const base = baseUrl(url);
  if (!URL.canParse(base)) throw new UsageError(`Invalid URL "${url}".`);
  // A folder can give the name of the environment; without one --name is required.
  const target = await targetAt(folder).catch(() => null);
  const server = target === null ? await serverCard(base, signal) : null;
  const name = options.name ?? target?.manifest?.name ?? (target === null ? server?.name : path.basename(target.folder));
  if (name === undefined) throw new UsageError('The environment has no name. Pass --name owner/name.');
  const card = target === null ? null : await cardOf(target.folder, target.manifest);
  await printPushed(options, await registerServer(client, base, options.name ?? nameFrom(name), card, options, signal));
}

async function pushFolder(client: PalestraClient, argument: string, options: PushOptions, signal: AbortSignal): Promise<void> {
  const target = await targetAt(argument, libraryFlags(options));
  const name = options.name ?? nameOf(target);
  parseName(name);
  const card = target.kind === 'library' ? libraryCard(target.library) : await cardOf(target.folder, target.manifest);
  if (options.build) {
    const { source, flags } = folderSource(target, options);
    return pushImage(client, source, name, card, { ...options, ...flags }, signal);
  }
  const { host, python } = options;
  const port = options.port || (await freePort(host));
  if (options.detach) {
    const { url, pid } = await serveDetached(target, argument, host, port, python, signal);
    const pushed = { ...(await registerServer(client, url, name, card, options, signal)), pid };
    await printPushed(options, { ...pushed, report: await sendReport(client, target, pushed, options, signal) });
    return;
  }
  const { url, process: child } = await runTarget(target, { host, port, python }, signal);
  try {
    const pushed = await registerServer(client, url, name, card, options, signal);
    process.stderr.write(`Serving ${url}. Press Ctrl-C to stop.\n`);
    await printPushed(options, { ...pushed, report: await sendReport(client, target, pushed, options, signal) });
    await untilStopped(signal);
  } finally {
    await child.stop();
  }
}

const nameOf = (target: Target): string =>
  nameFrom(target.kind === 'library' ? target.library.id : (target.manifest?.name ?? path.basename(target.folder)));

const libraryCard = ({ library, id, spec }: LibrarySpec): Card => ({
  description: `${id} of the Python library ${library}`,
  readme: `Served by \`palestra serve-python ${spec}\`.`,
});

async function pushImage(
  client: PalestraClient,
  source: ImageSource,
  name: string,
  card: Card | null,
  options: PushOptions,
  signal: AbortSignal,
): Promise<void> {
  const { host, detach } = options;
  const address = { environment: parseName(name).name, host, port: options.port || (await freePort(host)), detach };
  const container = await startContainer(source, address, options, signal);
  let keep = false;
  try {
    const pushed = await registerServer(client, container.url, name, card, options, signal);
    keep = detach;
    await printPushed(options, { ...pushed, container: container.name });
    process.stderr.write(
      detach ? `The container ${container.name} serves ${container.url}.\n` : `Serving ${container.url}. Press Ctrl-C to stop.\n`,
    );
    if (!detach) await watchContainer(container, signal);
  } finally {
    if (!keep) await container.remove();
  }
}

const REPORT_DEADLINE_MS = 120_000;

/** Validates a module of the kit and sends the report to the page of the environment. A failure is a warning: the environment is registered. */
async function sendReport(
  client: PalestraClient,
  target: Target,
  { name, version }: Registered,
  options: PushOptions,
  signal: AbortSignal,
): Promise<EnvironmentReport | null> {
  if (target.kind !== 'kit' || !options.report) return null;
  try {
    const late = AbortSignal.timeout(REPORT_DEADLINE_MS);
    const [first, ...others] = await validateModule(target.file, { tasks: 5, playerBudgetMs: 30_000 }, AbortSignal.any([signal, late]));
    if (first === undefined || others.length > 0) return null;
    await client.environments.setReport(name, first.report, version);
    const failed = first.report.checks.filter(({ status }) => status === 'failed');
    process.stderr.write(
      `${first.report.checks.length - failed.length} of ${first.report.checks.length} checks did not fail; the page of ${printable(name)} shows the report.\n`,
    );
    for (const { title, detail } of failed) process.stderr.write(`  ${printable(title)}: ${printable(detail)}\n`);
    return first.report;
  } catch (error) {
    if (signal.aborted) return null;
    const { name: kind, message } = error as Error;
    const reason = kind === 'TimeoutError' ? `it took longer than ${REPORT_DEADLINE_MS / 1_000} s` : message;
    process.stderr.write(`The environment was not validated: ${printable(reason)}. Try "palestra env validate".\n`);
    return null;
  }
}

/** For people, the result is on stdout as soon as the environment is registered. */
async function registerServer(
  client: PalestraClient,
  url: string,
  name: string,
  card: Card | null,
  options: PushOptions,
  signal: AbortSignal,
): Promise<Pushed> {
  const parsed = parseName(name);
  const kind = await detectServer(url, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    const { cause, message } = error as Error;
    throw new Error(`${url} does not respond: ${cause instanceof Error && cause.message ? cause.message : message}`);
  });
  if (kind === null) throw new Error(`${url} is not an ORS, OpenEnv or MCP server.`);
  const shown = kind === 'openenv' ? await completeCard(card, url, signal) : card;
  const registered = await register(client, parsed, { kind, url }, shown, !options.public);
  const declared = kind === 'remote' ? await declaredGuarantees(url, signal) : null;
  if (declared !== null && (await applyGuarantees(client, registered.name, declared)))
    process.stderr.write(`sessions: ${printable(JSON.stringify(declared))}, as the environment declares\n`);
  const what = { remote: 'an ORS server', openenv: 'an OpenEnv server', mcp: 'an MCP server' }[kind];
  const { name: full, version, changed } = registered;
  if (options.output === 'table')
    process.stdout.write(`${printable(full)}@${version}${changed ? '' : ': already registered with this server'}\n`);
  process.stderr.write(`${url} is ${what}\n`);
  await noteUnpromoted(client, full, version);
  return { ...registered, url, kind, pid: null, container: null, report: null };
}

/** What the folder does not say, the server is asked for. Without a folder, people describe the environment on its page. */
async function completeCard(card: Card | null, url: string, signal: AbortSignal): Promise<Card | null> {
  if (card === null || (card.description !== '' && card.readme !== null)) return card;
  const own = await serverCard(url, signal);
  if (own === null) return card;
  return { description: card.description || own.description, readme: card.readme ?? own.readme };
}

/** Programs get one object when everything is done. */
const printPushed = (options: Printed, pushed: Pushed): Promise<void> => printOne(options, pushed, () => {});

/** Runs `palestra env serve` in a separate process session, with its output in a file. */
async function serveDetached(
  target: Target,
  argument: string,
  host: string,
  port: number,
  python: string | undefined,
  signal: AbortSignal,
): Promise<{ url: string; pid: number }> {
  // A new folder: other users could have put a link at a name that they can guess.
  const log = path.join(mkdtempSync(path.join(tmpdir(), 'palestra-env-')), 'env.log');
  const output = openSync(log, 'w', 0o600);
  const command = target.kind === 'library' ? ['serve-python', argument, ...target.library.args] : ['env', 'serve', argument];
  const args = [...command, '--host', host, '--port', String(port), ...(python === undefined ? [] : ['--python', python])];
  const child = spawn(process.execPath, [process.argv[1]!, ...args], { detached: true, stdio: ['ignore', output, output] });
  const died = once(child, 'exit').then(() => {
    throw new Error(`The environment could not be served. See ${log}.`);
  });
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  await Promise.race([died, waitForResponse(url, signal)]).catch((error: unknown) => {
    child.kill();
    throw error;
  });
  // From here on the end of the process is not an error of this command.
  died.catch(() => {});
  child.unref();
  process.stderr.write(`Process ${child.pid} serves ${url}. Its log is ${log}.\n`);
  return { url, pid: child.pid! };
}

async function waitForResponse(url: string, interrupt: AbortSignal): Promise<void> {
  const late = AbortSignal.timeout(DETACHED_DEADLINE_MS);
  const signal = AbortSignal.any([interrupt, late]);
  while (!signal.aborted) {
    const answer = await fetch(`${url}/health`, { signal }).catch(() => null);
    await answer?.body?.cancel();
    if (answer !== null) return;
    await sleep(100, undefined, { signal }).catch(() => {});
  }
  interrupt.throwIfAborted();
  throw new Error(`${url} did not respond within ${DETACHED_DEADLINE_MS / 1000} s.`);
}

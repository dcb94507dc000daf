import { existsSync } from 'node:fs';
import { freePort, LIBRARIES, type LibraryFlags, librarySpec, type Target } from '@palestra/hosting';
import { looksLikeImage, nameOfImage } from '../../containers/image.ts';
import { type Printed, printOne } from '../../output.ts';
import { UsageError, withInterrupt } from '../../settings.ts';
import { type ContainerFlags, type ImageSource, folderSource, startContainer, watchContainer } from './container-options.ts';
import { runTarget, untilStopped } from './run.ts';
import { libraryFlags, targetAt } from './target.ts';

interface ServeOptions extends ContainerFlags, Printed {
  port?: number;
  host: string;
  python?: string;
}

const DEFAULT_PORT = 8000;

export async function serve(argument: string, options: ServeOptions): Promise<void> {
  if (librarySpec(argument) === null && !existsSync(argument) && looksLikeImage(argument)) {
    if (options.build) throw new UsageError(`--build needs a folder, but ${argument} is an image.`);
    return serveImage({ image: argument }, nameOfImage(argument), options.port ?? DEFAULT_PORT, options);
  }
  const target = await targetAt(argument);
  const port = options.port ?? target.manifest?.port ?? DEFAULT_PORT;
  if (options.build) {
    const { source, name, flags } = folderSource(target, options);
    return serveImage(source, name, port, { ...options, ...flags });
  }
  await serveTarget(target, port, options);
}

/** Serves an environment of a Python library until Ctrl-C. */
export async function servePython(
  spec: string,
  options: Pick<ServeOptions, 'port' | 'host' | 'python' | 'output'> & LibraryFlags,
): Promise<void> {
  if (librarySpec(spec) === null)
    throw new UsageError(`Unknown environment "${spec}". Expected LIBRARY:ID with one of the libraries ${LIBRARIES.join(', ')}.`);
  await serveTarget(await targetAt(spec, libraryFlags(options)), options.port ?? DEFAULT_PORT, options);
}

async function serveTarget(target: Target, port: number, options: Pick<ServeOptions, 'host' | 'python' | 'output'>): Promise<void> {
  const { host, python } = options;
  await withInterrupt(async (signal) => {
    const { url, process: child } = await runTarget(target, { host, port, python }, signal);
    try {
      await printServed(url, options, signal);
      await untilStopped(signal);
    } finally {
      await child.stop();
    }
  });
}

/** Programs also read which environments the server has. */
async function printServed(url: string, { output }: Printed, signal: AbortSignal): Promise<void> {
  const environments = output === 'table' ? [] : await (await import('./validate-play.ts')).environmentsAt(url, signal);
  await printOne({ output }, { url, environments }, () => void process.stdout.write(`${url}\n`));
}

async function serveImage(source: ImageSource, environment: string, port: number, options: ServeOptions): Promise<void> {
  const { host } = options;
  await withInterrupt(async (signal) => {
    const address = { environment, host, port: port === 0 ? await freePort(host) : port, detach: false };
    const container = await startContainer(source, address, options, signal);
    try {
      await printServed(container.url, options, signal);
      await watchContainer(container, signal);
    } finally {
      await container.remove();
    }
  });
}

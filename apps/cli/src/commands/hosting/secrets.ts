import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { readBounded } from '@palestra/kit';
import { printable, type Printed, printList, printOne } from '../../output.ts';
import { UsageError, withClient } from '../../settings.ts';
import { environmentOnly } from './named-environment.ts';

/** What the service accepts, in characters; each has at most four bytes. */
const MAX_CHARS = 100_000;

export async function listSecrets(target: string | undefined, options: Printed): Promise<void> {
  const secrets = await withClient(async (client) => client.hosting.secrets(await environmentOnly(client, target)));
  await printList(options, secrets, [
    ['secret', ({ name }) => name],
    ['changed', ({ updated_at }) => updated_at],
  ]);
}

export async function setSecret(name: string, target: string | undefined, options: Printed & { fromFile?: string }): Promise<void> {
  const value = options.fromFile === undefined ? await valueOfInput(name) : textOf(await fileBytes(options.fromFile));
  if (value.length > MAX_CHARS) throw new UsageError(`The value of ${name} is longer than ${MAX_CHARS} characters.`);
  const environment = await withClient(async (client) => {
    const found = await environmentOnly(client, target);
    await client.hosting.setSecret(found, name, value);
    return found;
  });
  await printOne(options, { environment, name }, () => {
    process.stdout.write(`${printable(name)}\n`);
    process.stderr.write(`Instances of ${printable(environment)} that start from now on have it.\n`);
  });
}

export async function deleteSecret(name: string, target: string | undefined, options: Printed): Promise<void> {
  const environment = await withClient(async (client) => {
    const found = await environmentOnly(client, target);
    await client.hosting.deleteSecret(found, name);
    return found;
  });
  await printOne(options, { environment, name }, () => void process.stdout.write(`${printable(name)}\n`));
}

/** Asks a person, without showing the answer; else reads standard input. */
async function valueOfInput(name: string): Promise<string> {
  if (process.stdin.isTTY) return askSecret(name);
  const bytes = await readBounded(process.stdin, MAX_CHARS * 4).catch((error: Error) => {
    throw new UsageError(`Standard input: ${error.message}`);
  });
  return textOf(bytes).replace(/\r?\n$/, '');
}

async function askSecret(name: string): Promise<string> {
  process.stderr.write(`Value of ${printable(name)}: `);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: silent, terminal: true });
  try {
    return await new Promise<string>((resolve, reject) => {
      terminal.once('close', () => reject(new UsageError('No value was typed.')));
      terminal.once('SIGINT', () => reject(new UsageError('No value was typed.')));
      terminal.question('', resolve);
    });
  } finally {
    terminal.close();
    process.stderr.write('\n');
  }
}

const fileBytes = (file: string): Promise<Uint8Array> =>
  readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${file}: ${error.code === 'ENOENT' ? 'no such file' : error.message}.`);
  });

/** Throws `UsageError` for bytes that are no text. */
function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new UsageError('The value is not UTF-8 text. Encode other data, for example with base64.');
  }
}

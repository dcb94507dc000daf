import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { addRemote, type SharedPalestra } from '../../support/palestra.ts';

export const trainTrl = path.resolve(import.meta.dirname, '../../../examples/train-trl');

/** Hosts the environment of examples/train-trl. */
export async function hostColours(palestra: SharedPalestra, name: string): Promise<{ environment: string; close(): void }> {
  const child = spawn(process.execPath, [path.join(trainTrl, 'colours.mjs')], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [url] = (await once(createInterface(child.stdout), 'line')) as [string];
  return { environment: await addRemote(palestra, name, url), close: () => void child.kill('SIGKILL') };
}

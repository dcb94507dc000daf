/**
 * A process: `node serve-harbor.js FOLDER NAME HOST PORT` serves the tasks of a build as an environment, until SIGTERM. The variable
 * PALESTRA_HARBOR says how its containers run, PALESTRA_SECRETS_DIR has the secrets of the environment.
 */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { serve } from '@palestra/environment-kit';
import { Engine } from '../docker/engine/engine.ts';
import type { EngineOptions } from '../docker/engine/engine-address.ts';
import { harborEnvironment } from './harbor-environment.ts';
import { readManifest, TASKS } from './harbor-files.ts';
import { type HarborRun, taskStarter } from './harbor-run.ts';

/** Of PALESTRA_HARBOR. */
export interface ServeOrder {
  engine: EngineOptions;
  run: HarborRun;
  variables: Readonly<Record<string, string>>;
}

const [folder, name, host, port] = process.argv.slice(2);
if (folder === undefined || name === undefined || host === undefined || port === undefined) {
  throw new Error('usage: serve-harbor FOLDER NAME HOST PORT');
}
const order = JSON.parse(process.env['PALESTRA_HARBOR'] ?? '') as ServeOrder;
const manifest = await readManifest(folder);
if (manifest === null) throw new Error(`The build ${folder} is no longer there. Deploy the version again.`);
const known = { ...order.variables, ...(await readSecrets(process.env['PALESTRA_SECRETS_DIR'])) };
const environment = harborEnvironment({
  name,
  tasks: manifest.tasks,
  folder: path.join(folder, TASKS),
  known,
  start: taskStarter(new Engine(order.engine), order.run, known),
  say: (text) => console.log(text),
});
const server = await serve([environment], { host, port: Number(port) });
const end = () => void server.close().finally(() => process.exit(0));
process.on('SIGTERM', end).on('SIGINT', end);
// An unhandled rejection of one session must not end the others.
process.on('unhandledRejection', (error) => console.error('Unhandled rejection:', error));
console.log(`Serving ${manifest.tasks.length} tasks at ${server.url}.`);

async function readSecrets(secrets: string | undefined): Promise<Record<string, string>> {
  if (secrets === undefined) return {};
  const names = await readdir(secrets).catch(() => []);
  return Object.fromEntries(await Promise.all(names.map(async (one) => [one, await readFile(path.join(secrets, one), 'utf8')] as const)));
}

// How long a line of a build takes, from the program that prints it to a client that follows the log of the deploy.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { wait } from './client.mjs';
import { atMost, median, shown } from './figures.mjs';
import { apiKey } from './processes.mjs';

const LINES = 20;
/** Prints the time in each line, after a pause in which the client connects. Then the build fails, because nothing else is measured. */
const PRINT = `let n = 0; setTimeout(() => setInterval(() => {
  console.log('printed at ' + Date.now());
  if ((n += 1) === ${LINES}) process.exit(1);
}, 200), 3000);`;
const HOSTING_LIMIT_MS = 150_000;

/** A folder with a Dockerfile on `image` whose step prints. */
export function dockerfileFolder(folder, image) {
  const source = path.join(folder, 'printing-image');
  mkdirSync(source);
  const step = JSON.stringify(['node', '-e', PRINT.replaceAll('\n', ' ')]);
  writeFileSync(path.join(source, 'Dockerfile'), `FROM ${image}\nRUN ${step}\nEXPOSE 8000\n`);
  return source;
}

/** A folder for the process provider, and a program that prints in the place of uv, which the build runs. */
export function pythonFolder(folder) {
  const [source, programs] = ['printing-program', 'programs'].map((name) => path.join(folder, name));
  mkdirSync(source);
  writeFileSync(path.join(source, 'server.py'), '');
  mkdirSync(programs);
  const uv = path.join(programs, 'uv');
  writeFileSync(uv, `#!${process.execPath}\nif (process.argv[2] === 'pip') { ${PRINT} }\n`);
  chmodSync(uv, 0o755);
  return { source, path: `${programs}:${process.env.PATH}` };
}

/** Deploys the folder by `cli`, commands of `palestra env`, and follows the log of its build. */
export async function logDelays({ url }, cli, source, provider) {
  await untilHosting(url);
  const { stdout } = await cli('deploy', source, '--name', `local/log-${provider}`, '--detach', '-o', 'json');
  const { id } = JSON.parse(stdout);
  const answer = await fetch(`${url}/v1/deploys/${id}/logs?follow=true`, { headers: { 'x-api-key': apiKey } });
  if (!answer.ok) throw new Error(`the log: ${answer.status} ${await answer.text()}`);
  const delays = [];
  let rest = '';
  for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
    const now = Date.now();
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const [, printed] = /"text":"printed at (\d+)"/.exec(line) ?? [];
      if (printed !== undefined) delays.push((now - Number(printed)) / 1000);
    }
  }
  if (delays.length !== LINES) throw new Error(`${delays.length} of ${LINES} lines arrived`);
  return [
    atMost(1, `a line of a build until a client has it, ${provider}, slowest of ${LINES}`, Math.max(...delays), 's'),
    shown(`the same, ${provider}, median`, median(delays), 's'),
  ];
}

/** The process that runs builds looks at its engine soon after the start. */
async function untilHosting(url) {
  for (const deadline = Date.now() + HOSTING_LIMIT_MS; Date.now() < deadline; await wait(200)) {
    const answer = await fetch(`${url}/v1/hosting`, { headers: { 'x-api-key': apiKey } });
    if ((await answer.json()).hosts) return;
  }
  throw new Error('the service hosts nothing');
}

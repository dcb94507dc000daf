import { serveAsChild } from '@palestra/environment-kit';
import { isolation } from '@palestra/sandbox';
import { existsSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { bundledEnvironments, versions } from './catalogue.ts';
import { coding } from './coding/coding.environment.ts';
import { codingEnv } from './coding_env/coding_env.environment.ts';

/** The committed result of `palestra env validate FILE --report-file REPORT`, or null. */
function readReport(name: string): unknown {
  const file = new URL(`./${name}/report.json`, import.meta.url);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null;
}

const usage = `usage: node main.js <environment> [--port 0] [--host 127.0.0.1] [--link <path or host:port>] [--exit-with-parent]
       node main.js --manifest
environments: ${bundledEnvironments.map(({ name }) => name).join(', ')}`;

function fail(message: string): never {
  process.stderr.write(`${message}\n${usage}\n`);
  process.exit(2);
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        port: { type: 'string', default: '0' },
        host: { type: 'string', default: '127.0.0.1' },
        link: { type: 'string' },
        'exit-with-parent': { type: 'boolean', default: false },
        manifest: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    return fail((error as Error).message);
  }
}

const { values, positionals } = readArguments();
if (values.manifest) {
  const manifest = bundledEnvironments.map(({ name, description = '', readme = '', deterministic = false, tools = {} }) => {
    const idempotent = Object.entries(tools).filter(([, tool]) => tool.idempotent);
    const idempotentNames = idempotent.map(([tool]) => tool);
    const version = versions[name] ?? 1;
    return { name, version, description, readme, deterministic, idempotent_tools: idempotentNames, report: readReport(name) };
  });
  process.stdout.write(`${JSON.stringify({ environments: manifest })}\n`);
} else {
  const environment = bundledEnvironments.find(({ name }) => name === positionals[0]);
  if (!environment) fail(`no environment ${JSON.stringify(positionals[0] ?? '')}`);
  const port = Number(values.port);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) fail(`bad port ${values.port}`);
  // With a link the process serves the API that passed the address; otherwise it is an ORS server.
  if (values.link === undefined) process.env['HOST'] = values.host;
  try {
    const status = [codingEnv, coding].includes(environment) ? (await isolation()).summary : null;
    const { host, link = null, 'exit-with-parent': exitWithParent } = values;
    await serveAsChild([environment], { host, port, link, exitWithParent, status });
  } catch (error) {
    process.stderr.write(`cannot serve ${environment.name}: ${(error as Error).message}\n`);
    process.exit(1);
  }
}

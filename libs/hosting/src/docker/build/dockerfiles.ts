import path from 'node:path';
import { HostingError } from '../../provider/hosting-error.ts';
import { type BuildPlan, fillIn, type ServerCommand } from '../../provider/provider.port.ts';
import { isPalestraRequirement, requirementAt } from '../../target/python-library.ts';
import { NOBODY } from '../instance/isolation.ts';
import { instructionsOf, plain } from './instructions.ts';

/** On which folders without a Dockerfile are built. */
export const BASE_IMAGES = { python: 'docker.io/library/python:3.12-slim', node: 'docker.io/library/node:22-slim' };
/** Where servers of generated images listen. */
export const GENERATED_PORT = 8_000;
/** Folders of the context of a generated Dockerfile. */
export const SOURCE = 'source';
export const KIT = 'kit';
export const PYTHON_PACKAGE = 'python-package';
/** Where an image has the program that serves modules of the kit, with all that it imports. */
const KIT_AT = '/opt/palestra';
/** Where an image has the Python package `palestra`, to install it. */
const PYTHON_PACKAGE_AT = '/opt/palestra-python';
const KIT_SERVER = `${KIT_AT}/node_modules/@palestra/hosting/dist/target/serve-kit.js`;

/** What a generated Dockerfile is made for. */
export interface DockerfileOptions {
  images: { python: string; node: string };
  /** Files of the folder, relative, with `/`. */
  files: ReadonlySet<string>;
  /** Name of the wheel in the folder `PYTHON_PACKAGE` of the context; empty: the folder itself is the source of the package. */
  pythonPackage?: string;
}

export type GeneratedPlan = Exclude<BuildPlan, { kind: 'dockerfile' | 'harbor' }>;

/** A Dockerfile for a folder that has none: dependencies first, so that a change of the code does not install them again. */
export function generateDockerfile(plan: GeneratedPlan, options: DockerfileOptions): string {
  const { server } = plan;
  const base = plan.kind === 'python' ? options.images.python : options.images.node;
  return [
    ...syntaxStage(plan, base),
    `FROM ${base}`,
    'WORKDIR /app',
    ...(needsKit(plan) ? [`COPY ${KIT} ${KIT_AT}`] : []),
    ...(plan.kind === 'python' ? pythonSteps(plan, options.pythonPackage ?? '') : nodeSteps(plan, options.files)),
    ...environmentLines(Object.fromEntries(Object.entries(server.variables).map(([name, value]) => [name, filled(value)]))),
    `USER ${NOBODY}`,
    `EXPOSE ${GENERATED_PORT}`,
    `WORKDIR ${path.posix.join('/app', server.cwd)}`,
    // A list and no shell, so that the server gets SIGTERM.
    'ENTRYPOINT []',
    `CMD ${JSON.stringify(commandOf(server))}`,
    '',
  ].join('\n');
}

/** The text of a Dockerfile of an author, with variables for the last stage. */
export const withVariables = (dockerfile: string, variables: Readonly<Record<string, string>>): string =>
  [dockerfile, ...environmentLines(variables), ''].join('\n');

/** What a step may ask for: none of the machine's network, rights or devices. A variable could say something else. */
const RUN_FLAG = /^--(?:mount=[^$]*|network=(?:none|default)|security=sandbox)$/i;
/** Of COPY and ADD: a variable stands only where it cannot become another flag. */
const COPY_FLAG = /^--(?:(?:chown|chmod)=|[^$]*$)/i;

/**
 * Refuses what some builders grant to a step: the network of the engine's machine, and its rights. Then `limits.network` would mean nothing. The
 * engine itself loads what ADD names by a URL, from its own network. Throws `source_invalid`.
 */
export function assertNoHostAccess(dockerfile: string): void {
  for (const { name, flags, rest } of instructionsOf(dockerfile)) {
    const allowed = name === 'RUN' ? RUN_FLAG : COPY_FLAG;
    const refused = /^(?:RUN|COPY|ADD)$/.test(name) ? flags.find((flag) => !allowed.test(plain(flag))) : undefined;
    if (refused !== undefined) {
      throw new HostingError('source_invalid', `The Dockerfile has "${name} ${refused}", which builds here do not grant. Remove it.`);
    }
    if (name === 'ADD' && /:\/\/|git@|\.git\b|\$/.test(addressIn(rest))) {
      throw new HostingError(
        'source_invalid',
        `The Dockerfile has "ADD ${rest.slice(0, 100)}". Use ADD only for files of the folder, without variables, and RUN to download.`,
      );
    }
  }
}

/** The words of ADD as a builder reads them, also those of a JSON list. */
const addressIn = (words: string): string =>
  plain(words.replaceAll(/\\u([\da-f]{4})/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16))));

/** Refuses what needs BuildKit, which knows no limit of memory. Throws `source_invalid`. */
export function assertNoBuildKit(dockerfile: string): void {
  for (const { name, flags, rest } of instructionsOf(dockerfile)) {
    const flag = flags.find((one) => !/^--(?:from|chown|platform|interval|timeout|start-period|retries)=/i.test(one));
    const heredoc = /^(?:RUN|COPY|ADD)$/.test(name) && !rest.startsWith('[') ? /(?:^|\s)<<-?["']?[A-Za-z_]\w*/.exec(rest) : null;
    const refused = flag ?? heredoc?.[0].trim();
    if (refused === undefined) continue;
    throw new HostingError(
      'source_invalid',
      `The Dockerfile has "${name} ${refused}", which needs BuildKit. This server builds without it, because BuildKit does not limit memory. ` +
        'Remove it, or ask the operator for Podman as the engine.',
    );
  }
}

const SYNTAX = 'syntax';
/** Checks the file that the server runs, in a stage of its own: a change of it does not install packages again. */
function syntaxStage(plan: GeneratedPlan, base: string): string[] {
  if (plan.kind !== 'python' || plan.entry === undefined) return [];
  const { entry } = plan;
  return [
    `FROM ${base} AS ${SYNTAX}`,
    'WORKDIR /app',
    `COPY ${JSON.stringify([path.posix.join(SOURCE, entry), path.posix.join('/app', entry)])}`,
    // Isolated: a module of the author does not take the place of one that the check imports.
    `RUN ${JSON.stringify(['python', '-I', '-m', 'py_compile', entry])}`,
  ];
}

function pythonSteps(plan: GeneratedPlan & { kind: 'python' }, pythonPackage: string): string[] {
  const requirements = plan.install.filter((file) => !isProject(file));
  const projects = plan.install.filter(isProject).map((file) => path.posix.join('/app', path.posix.dirname(file)));
  const packages = plan.packages.map((name) => requirementAt(name, path.posix.join(PYTHON_PACKAGE_AT, pythonPackage)));
  const install = 'RUN ["python", "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check"';
  return [
    'ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1',
    ...requirements.flatMap((file) => [
      `COPY ${JSON.stringify([path.posix.join(SOURCE, file), path.posix.join('/app', file)])}`,
      `${install}, "-r", ${JSON.stringify(file)}]`,
    ]),
    ...(needsPythonPackage(plan) ? [`COPY ${PYTHON_PACKAGE} ${PYTHON_PACKAGE_AT}`] : []),
    ...(packages.length > 0 ? [`${install}, ${packages.map((one) => JSON.stringify(one)).join(', ')}]`] : []),
    `COPY ${SOURCE} /app`,
    // Some builders leave out a stage of which nothing is copied.
    ...(plan.entry === undefined
      ? []
      : [`COPY --from=${SYNTAX} ${JSON.stringify([path.posix.join('/app', plan.entry), path.posix.join('/app', plan.entry)])}`]),
    ...projects.map((folder) => `${install}, ${JSON.stringify(folder)}]`),
  ];
}

const isProject = (file: string) => /(?:^|\/)(?:pyproject\.toml|setup\.py|setup\.cfg)$/.test(file);

function nodeSteps(plan: GeneratedPlan & { kind: 'node' }, files: ReadonlySet<string>): string[] {
  const environment = 'ENV NODE_ENV=production NPM_CONFIG_UPDATE_NOTIFIER=false';
  if (!plan.install) return [environment, `COPY ${SOURCE} /app`];
  const lock = ['package-lock.json', 'npm-shrinkwrap.json'].find((file) => files.has(file));
  const command = lock
    ? 'RUN ["npm", "ci", "--omit=dev", "--no-audit", "--no-fund"]'
    : 'RUN ["npm", "install", "--omit=dev", "--no-audit", "--no-fund"]';
  return [environment, `COPY ${SOURCE} /app`, command];
}

/** Whether the Python package `palestra` is installed. */
export const needsPythonPackage = (plan: GeneratedPlan): boolean => plan.kind === 'python' && plan.packages.some(isPalestraRequirement);

/** Whether the server is the program for modules of the kit. */
export const needsKit = ({ server }: GeneratedPlan): boolean =>
  [...server.args, ...Object.values(server.variables)].some((text) => text.includes('{kit}'));

const filled = (text: string): string => fillIn(text, { host: '0.0.0.0', port: GENERATED_PORT, kit: KIT_SERVER });
const commandOf = ({ command, args }: ServerCommand): string[] => [command, ...args].map(filled);

function environmentLines(variables: Readonly<Record<string, string>>): string[] {
  return Object.entries(variables).map(([name, value]) => {
    if (!/^[A-Za-z_]\w*$/.test(name) || /[\n\r\0]/.test(value)) {
      throw new HostingError(
        'source_invalid',
        `The variable "${name}" cannot be set in an image: letters, digits and "_", and a value in one line.`,
      );
    }
    return `ENV ${name}="${value.replaceAll(/[\\"$]/g, '\\$&')}"`;
  });
}

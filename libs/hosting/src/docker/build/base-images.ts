import { HostingError } from '../../provider/hosting-error.ts';
import type { LogLine } from '../../provider/provider.port.ts';
import type { Engine } from '../engine/engine.ts';
import { publicImageName } from './image-name.ts';
import { ensureInspected, type ImageInspection } from './image-pull.ts';
import { type Instruction, instructionsOf, linesOf, plain } from './instructions.ts';
import type { PodmanTriggers } from './podman-triggers.ts';

export interface BaseImage {
  /** Full. */
  name: string;
  /** Of `FROM --platform`; null: any. */
  platform: string | null;
}

type Variables = ReadonlyMap<string, string>;

/**
 * Writes the full names of images into FROM, COPY --from and RUN --mount=from=, because an engine may take a short one for the beginning of the id
 * of another tenant's image, or for its local name. Throws `source_invalid`.
 */
export function nameImages(
  dockerfile: string,
  buildArguments: Readonly<Record<string, string>>,
): { dockerfile: string; images: BaseImage[] } {
  const images: BaseImage[] = [];
  const variables = new Map<string, string>();
  /** Names of the stages until now; null for one without a name. */
  const stages: (string | null)[] = [];
  /** By the first line. */
  const changed = new Map<number, { text: string; last: number }>();
  for (const one of instructionsOf(dockerfile)) {
    let text: string | null = null;
    if (one.name === 'ARG' && stages.length === 0) addVariables(variables, one.rest, buildArguments);
    if (one.name === 'FROM') text = nameBase(one, stages, variables, images);
    if (/^(?:COPY|ADD|RUN)$/.test(one.name)) text = nameSources(one, stages, images);
    if (text !== null) changed.set(one.first, { text, last: one.last });
  }
  return { dockerfile: withChanges(dockerfile, changed), images };
}

/** Pulls what the engine does not have. Rejects with `source_invalid` for an image that a build must not use, `build_failed` if there is none. */
export async function ensureBases(
  engine: Engine,
  images: readonly BaseImage[],
  triggers: PodmanTriggers,
  onLine: (line: LogLine) => void,
  signal: AbortSignal,
): Promise<void> {
  const { podman } = await engine.info(signal);
  for (const one of images) {
    const { image } = await ensureInspected(engine, one.name, onLine, signal);
    assertBase(one, image);
    if (podman && (await triggers.has(engine, image.Id, signal))) throw hasTriggers(one.name);
  }
}

/** Throws `source_invalid` for an image that a build must not use. */
export function assertBase({ name, platform }: BaseImage, { Os, Architecture, Config }: ImageInspection): void {
  if ((Config?.OnBuild?.length ?? 0) > 0) throw hasTriggers(name);
  const own = `${Os}/${Architecture}`;
  if (platform !== null && Os !== undefined && Architecture !== undefined && platform !== own && !platform.startsWith(`${own}/`))
    throw invalid(`The Dockerfile wants ${name} for ${platform}; the engine has it for ${own}. Remove --platform.`);
}

/** Another text for a FROM; null: it stays as it is. */
function nameBase(one: Instruction, stages: (string | null)[], variables: Variables, images: BaseImage[]): string | null {
  const [, from, as = '', stage] = /^(\S+)(\s+AS\s+(\S+))?$/i.exec(one.rest) ?? [];
  // No builder accepts it; in a heredoc it is Python.
  if (from === undefined) return null;
  if (one.inHeredoc) throw invalid(`The Dockerfile has "FROM ${one.rest}" in a heredoc. Write it in another way.`);
  if (stage !== undefined && !/^[a-z][\w.-]*$/i.test(stage))
    throw invalid(`The Dockerfile has the stage "${stage}". Use letters and digits.`);
  const base = filled(from, variables);
  if (base.includes('$'))
    throw invalid(`The Dockerfile has "FROM ${from}", whose variable has no value. Write an ARG with a value before the first FROM.`);
  const earlier = base === 'scratch' ? base : stageOf(base, stages);
  stages.push(stage ?? null);
  if (earlier !== null) return earlier === from ? null : ['FROM', ...one.flags, `${earlier}${as}`].join(' ');
  const name = publicImageName(base);
  images.push({ name, platform: platformOf(one) });
  // The image of the engine's own platform is the one that was inspected.
  return `FROM ${name}${as}`;
}

function platformOf({ flags }: Instruction): string | null {
  const wanted = flags.map((flag) => {
    const [, platform] = /^--platform=(.+)$/.exec(plain(flag)) ?? [];
    if (platform === undefined) throw invalid(`The Dockerfile has "FROM ${flag}", which is unknown.`);
    return platform;
  });
  // Variables name the platform of the builder.
  return wanted.find((platform) => !platform.includes('$')) ?? null;
}

/** Another text for an instruction that copies or mounts files of stages and images; null: it stays as it is. */
function nameSources(one: Instruction, stages: readonly (string | null)[], images: BaseImage[]): string | null {
  const pattern = one.name === 'RUN' ? /(?<=^--mount=|,)\s*from\s*=\s*([^,]*)/gi : /(?<=^--)from=(.*)$/gis;
  const flags = one.flags.map((flag) => {
    const named = plain(flag).replaceAll(pattern, (_, source: string) => {
      if (flag !== plain(flag)) throw invalid(`The Dockerfile has "${one.name} ${flag}". Write it without quotes and backslashes.`);
      const stage = isNumberOf(source, stages) ? source : stageOf(source, stages);
      if (stage !== null) return `from=${stage}`;
      const name = publicImageName(source);
      images.push({ name, platform: null });
      return `from=${name}`;
    });
    return flag === plain(flag) ? named : flag;
  });
  return flags.every((flag, index) => flag === one.flags[index]) ? null : [one.head, ...flags, one.rest].join(' ');
}

/** Builders do not agree on whether the case of letters matters. */
const stageOf = (name: string, stages: readonly (string | null)[]): string | null =>
  stages.find((stage) => stage === name) ?? stages.find((stage) => stage?.toLowerCase() === name.toLowerCase()) ?? null;

/** Whether a text is the number of a stage before the present one. */
const isNumberOf = (text: string, stages: readonly unknown[]): boolean =>
  /^(?:0|[1-9]\d{0,5})$/.test(text) && Number(text) < stages.length - 1;

/** The variables of an ARG before the first FROM. */
function addVariables(variables: Map<string, string>, rest: string, buildArguments: Readonly<Record<string, string>>): void {
  for (const [, name, value] of rest.matchAll(/(?<!\S)([A-Za-z_]\w*)(?:=((?:"[^"]*"|'[^']*'|[^\s"'])*))?/g)) {
    const given = Object.hasOwn(buildArguments, name!) ? buildArguments[name!] : undefined;
    const known = given ?? (value === undefined ? undefined : plain(filled(value, variables)));
    if (known !== undefined) variables.set(name!, known);
  }
}

/** Leaves variables without a value, which no name of an image may have. */
const filled = (text: string, variables: Variables): string =>
  text.replaceAll(/\$(?:\{(\w+)\}|(\w+))/g, (all, braced?: string, bare?: string) => variables.get(braced ?? bare!) ?? all);

function withChanges(dockerfile: string, changed: ReadonlyMap<number, { text: string; last: number }>): string {
  if (changed.size === 0) return dockerfile;
  const lines = linesOf(dockerfile);
  const written: string[] = [];
  for (let index = 0; index < lines.length; index += 1) {
    const one = changed.get(index);
    written.push(one?.text ?? lines[index]!);
    if (one !== undefined) index = one.last;
  }
  return written.join('\n');
}

const hasTriggers = (name: string) =>
  invalid(`The image ${name} has ONBUILD instructions, which builds here do not run. Use another image.`);

const invalid = (detail: string) => new HostingError('source_invalid', detail);

import { existsSync } from 'node:fs';
import path from 'node:path';
import { parse, TomlError } from 'smol-toml';
import { z } from 'zod';
import { readText } from '../target/read-text.ts';
import { sourceInvalid } from './source-limits.ts';

/** What detection reads of `pyproject.toml`. */
const projectSchema = z.looseObject({
  project: z
    .looseObject({
      name: z.string().optional(),
      description: z.string().optional(),
      dependencies: z.array(z.string()).optional(),
      scripts: z.record(z.string(), z.string()).optional(),
      'entry-points': z.record(z.string(), z.unknown()).optional(),
    })
    .optional(),
  tool: z.looseObject({ palestra: z.looseObject({ serve: z.string().optional() }).optional() }).optional(),
});

export interface PythonProject {
  name: string | null;
  description: string | null;
  /** The distributions that it needs, in lower case, and their versions as they are written: `>=1,<2`, or empty. */
  needs: ReadonlyMap<string, string>;
  scripts: Record<string, string>;
  entryPoints: string[];
  /** `tool.palestra.serve`, such as `inspect:package/task`. */
  serves: string | null;
}

/** Null without `pyproject.toml`. Throws `source_invalid` with the line if it is invalid. */
export async function readProject(folder: string): Promise<PythonProject | null> {
  const text = await readText(path.join(folder, 'pyproject.toml'));
  if (text === null) return null;
  let raw: unknown;
  try {
    raw = parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw sourceInvalid(`pyproject.toml: line ${error.line}: ${error.message.split('\n')[0]}`, error);
  }
  const read = projectSchema.safeParse(raw);
  if (!read.success) {
    const [issue] = read.error.issues;
    throw sourceInvalid(`pyproject.toml: ${issue?.path.join('.')}: ${issue?.message}`);
  }
  const { project = {}, tool } = read.data;
  return {
    name: project.name ?? null,
    description: project.description ?? null,
    needs: new Map((project.dependencies ?? []).map(requirementOf)),
    scripts: project.scripts ?? {},
    entryPoints: Object.keys(project['entry-points'] ?? {}),
    serves: tool?.palestra?.serve ?? null,
  };
}

function requirementOf(text: string): [name: string, versions: string] {
  const [, name = '', versions = ''] = /^\s*([\w.-]+)\s*(?:\[[^\]]*\])?([^;@]*)/.exec(text) ?? [];
  return [name.toLowerCase().replaceAll(/[-_.]+/g, '-'), versions.trim()];
}

/** The module of a project, as packaging tools find it: `name` with "_", at the root or in `src`. Null if there is none. */
export function moduleOf(folder: string, { name }: PythonProject): { module: string; file: string } | null {
  if (name === null) return null;
  const module = name.toLowerCase().replaceAll(/[-.]+/g, '_');
  const files = ['', 'src/'].flatMap((root) => [`${root}${module}.py`, `${root}${module}/__init__.py`]);
  const file = files.find((one) => existsSync(path.join(folder, one)));
  return file === undefined ? null : { module, file };
}

import path from 'node:path';
import { isMap, isScalar, parseDocument } from 'yaml';
import { z } from 'zod';
import { readText } from './read-text.ts';

export const MANIFEST = 'openenv.yaml';

/** An invalid manifest; printed as one line. */
export class ManifestError extends Error {}

const text = z.string().min(1);
const label = z.union([text, z.number()]);

/** The keys of every manifest format (docs/reference/openenv.md#manifest). Only the name is required. */
const manifestSchema = z.looseObject({
  name: text,
  version: label.optional(),
  description: z.string().optional(),
  spec_version: z.union([z.number(), text]).optional(),
  type: text.optional(),
  runtime: text.optional(),
  /** `module:attribute` of the server, or the file of an environment of the kit. */
  app: text.optional(),
  port: z.int().min(1).max(65_535).optional(),
  /** Class names, in the older format. */
  action: text.optional(),
  observation: text.optional(),
  variables: z.record(z.string(), z.union([z.string(), z.number(), z.boolean()])).optional(),
});

export interface OpenEnvManifest {
  name: string;
  version: string | null;
  description: string | null;
  /** Null in the older format, which has no server. */
  app: string | null;
  port: number;
  /** Environment variables of the server. */
  variables: Record<string, string>;
  /** The whole manifest, with unknown keys. */
  raw: Record<string, unknown>;
}

const DEFAULT_PORT = 8000;

/** Throws `ManifestError`, with the line for invalid YAML. */
export function parseManifest(source: string): OpenEnvManifest {
  const document = parseDocument(source, { prettyErrors: true });
  const [broken] = document.errors;
  if (broken !== undefined) throw new ManifestError(`${MANIFEST}: ${broken.message.split('\n')[0]}`);
  if (!isMap(document.contents)) throw new ManifestError(`${MANIFEST}: expected keys and values, such as "name: my_env"`);
  const raw = document.toJS() as Record<string, unknown>;
  const read = manifestSchema.safeParse(raw);
  if (!read.success) {
    const issues = read.error.issues.map(({ path: where, message }) => `${where.join('.')}: ${message}`);
    throw new ManifestError(`${MANIFEST}: ${issues.join('; ')}`);
  }
  // YAML parses `1.0` without quotes as the number 1, so the source text is used.
  const node = document.get('version', true);
  const version = read.data.version === undefined ? null : isScalar(node) ? (node.source ?? String(node.value)) : null;
  const { name, description = null, app = null, port = DEFAULT_PORT, variables = {} } = read.data;
  const entries = Object.entries(variables).map(([key, value]): [string, string] => [key, String(value)]);
  return { name, version, description, app, port, variables: Object.fromEntries(entries), raw };
}

/** What a folder without a manifest is taken to be. */
export const withoutManifest = (name: string): OpenEnvManifest => ({
  name,
  version: null,
  description: null,
  app: null,
  port: DEFAULT_PORT,
  variables: {},
  raw: {},
});

/** Whether the manifest is a file, and not that of `withoutManifest`. */
export const isDeclared = ({ raw }: OpenEnvManifest): boolean => Object.keys(raw).length > 0;

/** Returns null if the folder has no manifest. */
export async function readManifest(folder: string): Promise<OpenEnvManifest | null> {
  const source = await readText(path.join(folder, MANIFEST));
  return source === null ? null : parseManifest(source);
}

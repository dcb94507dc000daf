import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';

interface Definition {
  $ref?: string;
  properties?: Record<string, Definition>;
  additionalProperties?: Definition | boolean;
  items?: Definition;
  'x-kubernetes-group-version-kind'?: { group: string; version: string; kind: string }[];
  'x-kubernetes-int-or-string'?: boolean;
  [more: string]: unknown;
}

/**
 * Writes the JSON Schemas that `kubeconform -strict -schema-location FOLDER/{{.ResourceKind}}{{.KindSuffix}}.json` reads, from the
 * `/openapi/v2` of an API server. Published ones are on the internet, and tests use none.
 */
export async function writeSchemas(openapi: { definitions: Record<string, Definition> }, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const definitions = Object.fromEntries(Object.entries(openapi.definitions).map(([name, one]) => [name, strict(name, one)]));
  await writeFile(path.join(folder, 'definitions.json'), JSON.stringify({ definitions }));
  for (const [name, { 'x-kubernetes-group-version-kind': kinds = [] }] of Object.entries(openapi.definitions)) {
    // Options of deletions belong to every group.
    if (kinds.length !== 1) continue;
    const [{ group, version, kind }] = kinds as [{ group: string; version: string; kind: string }];
    const suffix = [...(group === '' ? [] : [group.split('.')[0]!]), version].join('-').toLowerCase();
    const schema = { $ref: `definitions.json#/definitions/${name}` };
    await writeFile(path.join(folder, `${kind.toLowerCase()}-${suffix}.json`), JSON.stringify(schema));
  }
}

/** An object has no other fields than those of its definition. */
function strict(name: string, definition: Definition): Definition {
  // Quantities and ports are numbers or texts.
  if (/\.(IntOrString|Quantity)$/.test(name)) return { oneOf: [{ type: 'string' }, { type: 'number' }] };
  const { properties, items, additionalProperties } = definition;
  return {
    ...definition,
    ...(definition.$ref && { $ref: definition.$ref.replace('#/', 'definitions.json#/') }),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([key, one]) => [key, strict('', one)])),
      additionalProperties: additionalProperties ?? false,
    }),
    ...(items && { items: strict('', items) }),
    ...(typeof additionalProperties === 'object' && { additionalProperties: strict('', additionalProperties) }),
  };
}

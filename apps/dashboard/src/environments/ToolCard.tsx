import type { JsonObject, JsonValue, ToolSpec } from '@palestra/protocol';
import { PlainText } from '../text/PlainText.tsx';

const isObject = (value?: JsonValue): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value);

/** `string`, `integer[]`, `"a" | "b"`, `string | null`: a JSON Schema in one line; `any` when it does not say. */
export function typeOf(schema?: JsonValue): string {
  if (!isObject(schema)) return 'any';
  if (Array.isArray(schema['enum'])) return schema['enum'].map((value) => JSON.stringify(value)).join(' | ');
  if (schema['const'] !== undefined) return JSON.stringify(schema['const']);
  const choices = schema['anyOf'] ?? schema['oneOf'];
  if (Array.isArray(choices)) return [...new Set(choices.map(typeOf))].join(' | ');
  if (schema['type'] === 'array') return `${typeOf(schema['items'])}[]`;
  if (typeof schema['$ref'] === 'string') return schema['$ref'].split('/').at(-1) ?? 'any';
  return Array.isArray(schema['type']) ? schema['type'].join(' | ') : typeof schema['type'] === 'string' ? schema['type'] : 'any';
}

function limitsOf(schema: JsonObject): string {
  const names = ['minimum', 'maximum', 'minLength', 'maxLength', 'pattern', 'default'];
  return names
    .filter((name) => schema[name] !== undefined)
    .map((name) => `${name} ${JSON.stringify(schema[name])}`)
    .join(', ');
}

/** One tool: its name, what it does, and its arguments as aligned name, type and description. */
export function ToolCard({ tool, terminal }: { tool: ToolSpec; terminal: boolean }) {
  const properties = isObject(tool.input_schema?.['properties']) ? Object.entries(tool.input_schema['properties']) : [];
  const required = Array.isArray(tool.input_schema?.['required']) ? tool.input_schema['required'] : [];
  return (
    <article className="border-b border-line py-[10px]">
      <h3 className="flex items-center gap-2">
        <span className="mono font-medium text-[var(--role-tool)]">{tool.name}</span>
        {terminal && <span className="chip text-good">● ends the episode</span>}
      </h3>
      {tool.description && (
        <p className="max-w-[84ch] whitespace-pre-line text-ink-2">
          <PlainText text={tool.description} />
        </p>
      )}
      {properties.length === 0 ? (
        <p className="label mt-1">no arguments</p>
      ) : (
        <dl className="mt-1 grid grid-cols-[max-content_max-content_minmax(0,1fr)] gap-x-4 gap-y-[2px] text-[12px]">
          {properties.map(([name, schema]) => (
            <div key={name} className="contents">
              <dt className="mono">
                {name}
                {!required.includes(name) && (
                  <span className="text-ink-3" title="optional">
                    ?
                  </span>
                )}
              </dt>
              <dd className="mono max-w-[44ch] truncate text-ink-3" title={typeOf(schema)}>
                {typeOf(schema)}
              </dd>
              <dd className="text-ink-2">
                {isObject(schema) && typeof schema['description'] === 'string' && <PlainText text={schema['description']} />}{' '}
                {isObject(schema) && <span className="text-ink-3">{limitsOf(schema)}</span>}
              </dd>
            </div>
          ))}
        </dl>
      )}
    </article>
  );
}

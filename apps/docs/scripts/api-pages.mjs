// The API reference: Markdown pages from docs/openapi.json.

/** Pages in the order of the navigation, with the tags of their operations. An operation with another tag is on the last page. */
const PAGES = [
  ['runs', 'Runs and figures', ['Run', 'RunInsights', 'RunGroups', 'RunCurves', 'RunMoves', 'RunSteps', 'Compare', 'Search']],
  ['rollouts', 'Rollouts and reviews', ['Rollout', 'RolloutReads', 'Annotation', 'Review', 'Otlp']],
  ['exports', 'Exports', ['RolloutExport', 'Export', 'ExportLookup']],
  ['sessions', 'Sessions', ['Session', 'SessionRollout', 'Slot', 'Text']],
  ['environments', 'Environments and tasks', ['Environments', 'EnvironmentUsage', 'TaskSets', 'TaskDifficulty', 'File', 'Github']],
  ['alerts', 'Alerts and webhooks', ['Alert', 'Webhook']],
  [
    'accounts',
    'Keys, members and shares',
    ['Key', 'SecretRotation', 'Account', 'SignIn', 'BrowserSession', 'Organisation', 'Share', 'Audit'],
  ],
  ['protocols', 'ORS, OpenEnv and MCP', ['Sessions', 'OpenEnv', 'MCP']],
  ['service', 'Service', ['Health', 'Metrics', 'Demo', 'Billing']],
];
/** Objects inside objects are listed down to this level; deeper ones are in openapi.json. */
const MAX_DEPTH = 3;

/** Text of a schema in Markdown that a Vue template also is: code spans keep their text. */
const escape = (text) =>
  text
    .split(/(`[^`]+`)/)
    .map((part, index) => (index % 2 === 1 ? part : part.replaceAll('<', '&lt;').replaceAll('*', '\\*').replaceAll('[', '\\[')))
    .join('')
    .replaceAll(/\s+/g, ' ')
    .trim();
const cell = (text) => escape(text).replaceAll('|', '\\|');

/** What a value may be, in words. */
function typeOf(schema) {
  if (schema.$ref) return 'error';
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.enum) return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(', ');
  const options = schema.anyOf ?? schema.oneOf;
  if (options) return [...new Set(options.map(typeOf))].join(' or ');
  if (schema.type === 'array') return schema.items ? `array of ${plural(typeOf(schema.items))}` : 'array';
  const names = [schema.type ?? 'any'].flat();
  const bounds = [schema.minimum, schema.maximum].map((bound) => (Math.abs(bound) >= Number.MAX_SAFE_INTEGER ? undefined : bound));
  const range = bounds.every((bound) => bound !== undefined) ? ` ${bounds.join(' to ')}` : '';
  return `${names.join(' or ')}${schema.format ? ` (${schema.format})` : ''}${range}`;
}
const plural = (type) => (/^(?:object|string|number|integer|array)$/.test(type) ? `${type}s` : type);

/** The schema of the object inside a schema: of an array its items, of a choice its first object. */
function objectIn(schema) {
  if (schema.properties) return schema;
  if (schema.items && !Array.isArray(schema.items)) return objectIn(schema.items);
  return (schema.anyOf ?? schema.oneOf ?? []).map(objectIn).find(Boolean);
}

/** A line for each field, `settings.tags`. */
function fieldsOf(schema, prefix = '', depth = 1) {
  const object = objectIn(schema);
  if (!object) return [];
  const required = new Set(object.required ?? []);
  return Object.entries(object.properties).flatMap(([name, field]) => {
    const path = `${prefix}${name}`;
    const notes = [
      field.description ?? '',
      field.default === undefined || field.default === '' ? '' : `Default: \`${JSON.stringify(field.default)}\`.`,
    ];
    const line = { path, type: typeOf(field), required: required.has(name), description: notes.filter(Boolean).join(' ') };
    const inner = depth < MAX_DEPTH ? fieldsOf(field, `${path}${field.type === 'array' ? '[]' : ''}.`, depth + 1) : [];
    return [line, ...inner];
  });
}

function table(fields) {
  const rows = fields.map(
    ({ path, type, required, description }) => `| \`${path}\`${required ? ' (required)' : ''} | ${cell(type)} | ${cell(description)} |`,
  );
  return ['| field | type | description |', '| --- | --- | --- |', ...rows].join('\n');
}

function parametersOf(operation) {
  if (operation.parameters.length === 0) return '';
  const fields = operation.parameters.map(({ name, in: place, required, schema, description }) => ({
    path: name,
    type: typeOf(schema),
    required,
    description: [
      place === 'query' ? '' : `In the ${place}.`,
      description ?? schema.description ?? '',
      schema.default === undefined || schema.default === '' ? '' : `Default: \`${JSON.stringify(schema.default)}\`.`,
    ]
      .filter(Boolean)
      .join(' '),
  }));
  return `**Parameters**\n\n${table(fields)}\n`;
}

/** The body of a request or answer, by content type. */
function contentOf(title, content = {}) {
  return Object.entries(content)
    .map(([type, { schema = {} }]) => {
      const fields = fieldsOf(schema);
      const head = `**${title}**: ${fields.length > 0 ? (schema.type === 'array' ? 'array of objects' : 'object') : typeOf(schema)}, \`${type}\``;
      return fields.length > 0 ? `${head}\n\n${table(fields)}\n` : `${head}\n`;
    })
    .join('\n');
}

/** Status and codes of an error: its name in the document is `404.route_not_found.session_not_found`. */
function errorOf([status, { $ref = '' }]) {
  const codes = $ref.split('/').at(-1).split('.').slice(1);
  return [status, codes.map((code) => `\`${code}\``).join(', ')].join(' ').trim();
}

function renderOperation({ method, route, operation }) {
  const answers = Object.entries(operation.responses);
  const isError = ([status]) => Number(status) >= 400;
  const parts = [
    `## ${escape(operation.summary)}`,
    `\`${method.toUpperCase()} ${route}\``,
    operation.security?.length === 0 ? 'Needs no key.' : '',
    parametersOf(operation),
    contentOf('Body', operation.requestBody?.content),
    ...answers
      .filter((answer) => !isError(answer))
      .map(([status, { description, content }]) =>
        content ? contentOf(`Answer ${status}`, content) : `**Answer ${status}**: ${escape(description)}`,
      ),
    `**Errors**: ${answers.filter(isError).map(errorOf).join('; ')}`,
  ];
  return `${parts.filter(Boolean).join('\n\n')}\n`;
}

/** The pages of the API reference: `{ name, title, text }`. */
export function apiPages(document) {
  const operations = Object.entries(document.paths).flatMap(([route, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, route, operation })),
  );
  const pageOf = (tag) => PAGES.find(([, , tags]) => tags.includes(tag)) ?? PAGES.at(-1);
  return PAGES.map((page) => {
    const [name, title] = page;
    const place = ({ operation }) => page[2].indexOf(operation.tags[0]);
    const own = operations
      .filter(({ operation }) => pageOf(operation.tags[0]) === page)
      .toSorted((one, other) => place(one) - place(other));
    const intro = `Generated from <a href="/openapi.json" target="_self">openapi.json</a>. Errors have the same body everywhere: [errors](/errors).`;
    return { name, title, text: `---\noutline: 2\n---\n\n# ${title}\n\n${intro}\n\n${own.map(renderOperation).join('\n')}` };
  });
}

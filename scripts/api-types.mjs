import { compile } from 'json-schema-to-typescript';

/** `GET /v1/runs/{run}/summary` for each JSON answer and body of the API that the dashboard reads. */
function operations(document) {
  const found = [];
  for (const [path, methods] of Object.entries(document.paths)) {
    if (!path.startsWith('/v1/') || path.startsWith('/v1/github/')) continue;
    for (const [method, operation] of Object.entries(methods)) found.push([`${method.toUpperCase()} ${path}`, operation]);
  }
  return found;
}
const jsonOf = (content) => content?.content?.['application/json']?.schema;
const answerOf = ({ responses }) => jsonOf(responses['200'] ?? responses['201'] ?? responses['202']);
const withoutRefs = (schema) => !JSON.stringify(schema).includes('"$ref"');

/** TypeScript of what every `/v1` route answers and takes, made from the OpenAPI document: the dashboard's view of the wire. */
export async function renderApiTypes(document) {
  const table = (title, read) => {
    const rows = operations(document)
      .map(([name, operation]) => [name, read(operation)])
      .filter(([, schema]) => schema !== undefined && withoutRefs(schema));
    return {
      title,
      type: 'object',
      additionalProperties: false,
      required: rows.map(([name]) => name),
      properties: Object.fromEntries(rows),
    };
  };
  const options = { bannerComment: '', additionalProperties: false, format: false, ignoreMinAndMaxItems: true };
  const parts = [
    await compile(table('ApiAnswers', answerOf), 'ApiAnswers', options),
    await compile(
      table('ApiBodies', ({ requestBody }) => jsonOf(requestBody)),
      'ApiBodies',
      options,
    ),
  ];
  return `// Written by \`npm run generate\` from docs/openapi.json; do not edit.\n${parts.join('\n')}`;
}

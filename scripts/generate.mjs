// `npm run generate`: writes what is committed but generated. CI fails when it differs.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { errorCatalogue } from '@palestra/protocol';
import { QUERY_KEYS, QUERY_LIMITS } from '@palestra/query';
import { renderApiTypes } from './api-types.mjs';
import { renderErrors } from './errors-doc.mjs';
import { renderQuery } from './query-doc.mjs';

const docs = path.resolve(import.meta.dirname, '../docs');
writeFileSync(path.join(docs, 'errors.md'), renderErrors(errorCatalogue));
writeFileSync(path.join(docs, 'query.md'), renderQuery(QUERY_KEYS, QUERY_LIMITS));

const openapi = JSON.parse(readFileSync(path.join(docs, 'openapi.json'), 'utf8'));
const apiTypes = path.resolve(docs, '../apps/dashboard/src/data/generated/api.ts');
mkdirSync(path.dirname(apiTypes), { recursive: true });
writeFileSync(apiTypes, await renderApiTypes(openapi));

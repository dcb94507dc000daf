// `npm run generate`: writes the generated files that are committed. CI fails if they differ.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { errorCatalogue } from '@palestra/protocol';
import { QUERY_KEYS, QUERY_LIMITS } from '@palestra/query';
import { renderErrors } from './errors-doc.mjs';
import { renderQuery } from './query-doc.mjs';

const docs = path.resolve(import.meta.dirname, '../docs');
writeFileSync(path.join(docs, 'errors.md'), renderErrors(errorCatalogue));
writeFileSync(path.join(docs, 'query.md'), renderQuery(QUERY_KEYS, QUERY_LIMITS));

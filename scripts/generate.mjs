// `npm run generate`: writes what is committed but generated. CI fails when it differs.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { errorCatalogue } from '@palestra/protocol';
import { renderErrors } from './errors-doc.mjs';

const docs = path.resolve(import.meta.dirname, '../docs');
writeFileSync(path.join(docs, 'errors.md'), renderErrors(errorCatalogue));

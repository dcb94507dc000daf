// `npm run generate`: writes the generated files that are committed. CI fails if they differ.
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { errorCatalogue } from '@palestra/protocol';
import { QUERY_KEYS, QUERY_LIMITS } from '@palestra/query';
import { EXIT_CODES } from '../apps/cli/dist/exit-codes.js';
import { defaultOf, examplesOf, pathOf, visibleCommands } from '../apps/cli/dist/program/define.js';
import { buildProgram } from '../apps/cli/dist/program/program.js';
import { renderCli } from './cli-doc.mjs';
import { renderErrors } from './errors-doc.mjs';
import { renderQuery } from './query-doc.mjs';

const docs = path.resolve(import.meta.dirname, '../docs');
writeFileSync(path.join(docs, 'errors.md'), renderErrors(errorCatalogue));
writeFileSync(path.join(docs, 'query.md'), renderQuery(QUERY_KEYS, QUERY_LIMITS));
const cli = { program: buildProgram(), defaultOf, examplesOf, pathOf, visibleCommands, exitCodes: EXIT_CODES };
writeFileSync(path.join(docs, 'cli.md'), renderCli(cli));

import type { RolloutExportBody } from '@palestra/protocol';

/** A word of a POSIX shell, in single quotes unless it has only safe characters. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

type ExportRequest = Pick<RolloutExportBody, 'run' | 'query' | 'rollouts' | 'as_of' | 'format' | 'lens' | 'redact'>;

/** The export as a command of the CLI. */
export function asCommand({ run, query, format, lens, redact }: ExportRequest): string {
  const words = ['palestra rollouts export'];
  if (run) words.push(`--run ${shellWord(run)}`);
  if (query) words.push(`--query ${shellWord(query)}`);
  words.push(`--format ${format}`);
  if (lens && lens !== 'canonical') words.push(`--lens ${lens}`);
  if (redact) words.push('--redact');
  return [...words, '--out dataset'].join(' ');
}

/** The export as a curl command; the key stays in an environment variable. */
export function asCurl(origin: string, request: ExportRequest): string {
  const body = JSON.stringify(request);
  return `curl -sS ${shellWord(`${origin}/v1/exports`)} -H "X-API-Key: $OPENREWARD_API_KEY" -H 'Content-Type: application/json' -d ${shellWord(body)}`;
}

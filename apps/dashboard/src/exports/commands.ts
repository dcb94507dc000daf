import type { RolloutExportBody } from '@palestra/protocol';

/** A word of a POSIX shell: bare where nothing in it means something, else in single quotes. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

export type Asked = Pick<RolloutExportBody, 'run' | 'query' | 'format' | 'lens' | 'redact'>;

/** The export as a command of the CLI. */
export function asCommand({ run, query, format, lens, redact }: Asked): string {
  const words = ['palestra rollouts export'];
  if (run) words.push(`--run ${shellWord(run)}`);
  if (query) words.push(`--query ${shellWord(query)}`);
  words.push(`--format ${format}`);
  if (lens && lens !== 'canonical') words.push(`--lens ${lens}`);
  if (redact) words.push('--redact');
  return [...words, '--out dataset'].join(' ');
}

/** The export as a request; the key stays in the reader's environment. */
export function asCurl(origin: string, asked: Asked): string {
  const body = JSON.stringify(asked);
  return `curl -sS ${shellWord(`${origin}/v1/exports`)} -H "X-API-Key: $OPENREWARD_API_KEY" -H 'Content-Type: application/json' -d ${shellWord(body)}`;
}

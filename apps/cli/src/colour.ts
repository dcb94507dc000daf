import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** Whether a stream shows colours: `NO_COLOR` and `FORCE_COLOR` decide, else whether it is a terminal. `--no-color` sets `NO_COLOR`. */
export function hasColour(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv = process.env): boolean {
  if (env['NO_COLOR'] || env['FORCE_COLOR'] === '0') return false;
  if (env['FORCE_COLOR']) return true;
  return stream.isTTY === true && env['TERM'] !== 'dumb';
}

/** The text in a style if `stream` shows colours. */
export const coloured = (stream: { isTTY?: boolean }, style: Style, text: string): string =>
  hasColour(stream) ? styleText(style, text) : text;

/**
 * Parses terminal output. SGR colours (ECMA-48) become class names. All other escape sequences (cursor, title, hyperlink, OSC 52
 * clipboard) are removed. CSI is ESC [, OSC is ESC ].
 */
export interface StyledText {
  text: string;
  /** Space-separated classes of theme/app.css; empty for plain text. */
  className: string;
}

// CSI … final byte | OSC … BEL or ST | other two-character escapes | a lone C1 or ESC
const escapes =
  /\u001b\[([0-9;:]*)([\u0020-\u002f]*[\u0040-\u007e])|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[^[\]]?|[\u0080-\u009f]/g;

interface Style {
  colour: number | null;
  flags: Set<string>;
}
const flagOf: Record<number, string> = { 1: 'ansi-bold', 2: 'ansi-dim', 3: 'ansi-italic', 4: 'ansi-underline' };
const endOf: Record<number, string[]> = { 22: ['ansi-bold', 'ansi-dim'], 23: ['ansi-italic'], 24: ['ansi-underline'] };

function applySgr(style: Style, parameters: string): void {
  const codes = parameters.split(/[;:]/).map(Number);
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i]!;
    if (code === 0) {
      style.colour = null;
      style.flags.clear();
    } else if (code === 38 || code === 48) {
      // Skip 256-colour and true-colour arguments: only the palette of the page is readable in both themes.
      i += codes[i + 1] === 5 ? 2 : codes[i + 1] === 2 ? 4 : 0;
    } else if (code >= 30 && code <= 37) style.colour = code - 30;
    else if (code >= 90 && code <= 97) style.colour = code - 90;
    else if (code === 39) style.colour = null;
    else if (flagOf[code]) style.flags.add(flagOf[code]);
    else for (const flag of endOf[code] ?? []) style.flags.delete(flag);
  }
}

export function parseAnsi(input: string): StyledText[] {
  if (!/[\u001b\u0080-\u009f]/.test(input)) return input === '' ? [] : [{ text: input, className: '' }];
  const parts: StyledText[] = [];
  const style: Style = { colour: null, flags: new Set() };
  let position = 0;
  const push = (text: string) => {
    if (text === '') return;
    const className = [...style.flags, ...(style.colour === null ? [] : [`ansi-${style.colour}`])].join(' ');
    parts.push({ text, className });
  };
  for (const match of input.matchAll(escapes)) {
    push(input.slice(position, match.index));
    position = match.index + match[0].length;
    if (match[2] === 'm') applySgr(style, match[1] ?? '');
  }
  push(input.slice(position));
  return parts;
}

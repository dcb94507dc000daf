import type { MarkedExtension, Tokens } from 'marked';

/** Finds LaTeX formulas in Markdown: `$…$` and `\(…\)` in a line, `$$…$$` and `\[…\]` on their own. */

/** Characters. A longer text between two delimiters is not a formula. */
const MAX_FORMULA = 3_000;

export interface Formula {
  tex: string;
  /** On a line by itself. */
  display: boolean;
}
type FormulaToken = Tokens.Generic & Formula;

/** Whether a Markdown text can have a formula at all. */
export const mayHaveFormula = (source: string): boolean => source.includes('$') || /\\[([]/.test(source);

// No formula has a blank line: a lone delimiter must not join two paragraphs.
const body = String.raw`((?:\\[^\n]|[^\\\n]|\n(?!\s*\n)){1,${MAX_FORMULA}}?)`;
const displayed = String.raw`\$\$${body}\$\$|\\\[${body}\\\]`;
const BLOCK = new RegExp(String.raw`^ {0,3}(?:${displayed})[ \t]*(?:\n+|$)`);
// The rules of Pandoc for a dollar sign: no space inside of the delimiters, no letter or digit after the closing one.
const inDollars = String.raw`\$(?![\s$])((?:\\[^\n]|[^\\$\`\n]|\n(?!\s*\n)){1,${MAX_FORMULA}}?)(?<!\s)\$(?![\w$\{])`;
const INLINE = new RegExp(String.raw`^(?:${displayed}|\\\(${body}\\\)|${inDollars})`);
// A sign after a letter or digit is a currency (US$) or a variable of a shell.
const INLINE_START = /(?<![\w\\])\$|\\[([]/;
const BLOCK_START = /\n {0,3}(?:\$\$|\\\[)/;

/** Whether the text between two single dollar signs is a formula, not the text between two amounts or two variables. */
function isFormula(tex: string): boolean {
  const words = tex.replace(/\\[A-Za-z]+\*?(?:\{[^{}]*\})?/g, '');
  if (/^\d/.test(words)) return !/\s[A-Za-z]{2,}/.test(words);
  return words !== tex || /[\^_=<>+*/{}|-]/.test(tex) || !/(?:^|\s)[A-Za-z]{3,}(?:\s|$)/.test(tex);
}

function blockAt(source: string): FormulaToken | undefined {
  const match = BLOCK.exec(source);
  const tex = (match?.[1] ?? match?.[2])?.trim();
  return match && tex ? { type: 'displayed', raw: match[0], tex, display: true } : undefined;
}

function inlineAt(source: string): FormulaToken | undefined {
  const match = INLINE.exec(source);
  if (!match) return undefined;
  const [raw, dollars, brackets, parentheses, single] = match;
  if (single !== undefined && !isFormula(single)) return undefined;
  const tex = (dollars ?? brackets ?? parentheses ?? single)!.trim();
  return tex === '' ? undefined : { type: 'formula', raw, tex, display: (dollars ?? brackets) !== undefined };
}

const indexIn = (source: string, start: RegExp): number | undefined => {
  const at = source.search(start);
  return at < 0 ? undefined : at;
};

/** Extends the Markdown parser by formulas. `render` returns their HTML. Code is not searched. */
export function formulaSyntax(render: (formula: Formula, raw: string) => string): MarkedExtension {
  const renderer = (token: Tokens.Generic) => render(token as FormulaToken, token.raw);
  return {
    extensions: [
      { name: 'displayed', level: 'block', start: (source) => indexIn(source, BLOCK_START), tokenizer: blockAt, renderer },
      { name: 'formula', level: 'inline', start: (source) => indexIn(source, INLINE_START), tokenizer: inlineAt, renderer },
    ],
  };
}

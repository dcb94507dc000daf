import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import typescript from 'highlight.js/lib/languages/typescript';
import { Marked, type MarkedExtension } from 'marked';
import type { FormulaRenderer } from './formula-loader.ts';
import { type Formula, formulaSyntax, mayHaveFormula } from './formula-syntax.ts';

/**
 * Converts untrusted Markdown to HTML. Raw HTML and image addresses are shown as text. Links keep only http and https. The result is not
 * safe by itself: only `markdown.ts` may use it, which applies an allowlist.
 */
hljs.registerLanguage('bash', bash);
hljs.registerLanguage('json', json);
hljs.registerLanguage('python', python);
hljs.registerLanguage('typescript', typescript);

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => entities[character]!);

function safeLink(href: string): string | null {
  try {
    const url = new URL(href);
    return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : null;
  } catch {
    return null;
  }
}

/** Milliseconds. Text that takes longer is shown unformatted: the search of the parser for the end of an emphasis can be cubic. */
const PARSE_MS = 300;
let deadline = 0;
function checkDeadline(): false {
  if (performance.now() > deadline) throw new Error('Parsing the Markdown takes too long.');
  return false;
}

/** Milliseconds for the formulas of a text. The rest are shown as source. */
const FORMULAS_MS = 200;
let renderFormula: FormulaRenderer | null = null;
let hasFormula = false;

/** A formula, or its source if it cannot be rendered. */
function formulaHtml(formula: Formula, raw: string): string {
  hasFormula = true;
  const source = raw.trim();
  const html = performance.now() < deadline + FORMULAS_MS ? renderFormula?.(formula) : null;
  const shown = html ?? `<code>${escapeHtml(source)}</code>`;
  return `<span class="formula${formula.display ? ' displayed' : ''}" title="${escapeHtml(source)}">${shown}</span>`;
}

const options: MarkedExtension = {
  gfm: true,
  async: false,
  // The parser calls these first for every block and every inline token. They only check the deadline.
  tokenizer: { space: checkDeadline, escape: checkDeadline },
  renderer: {
    html: ({ raw }) => escapeHtml(raw),
    image: ({ href, text }) => `<code>${escapeHtml(`image ${text ? `“${text}” ` : ''}${href}`)}</code>`,
    link({ href, tokens }) {
      const target = safeLink(href);
      const label = this.parser.parseInline(tokens);
      if (target === null) return `${label} <code>${escapeHtml(href)}</code>`;
      return `<a href="${escapeHtml(target)}" target="_blank" rel="noopener noreferrer nofollow">${label}</a>`;
    },
    code({ text, lang }) {
      const language = lang?.split(/\s/)[0] ?? '';
      const body = hljs.getLanguage(language) && text.length < 50_000 ? hljs.highlight(text, { language }).value : escapeHtml(text);
      return `<pre><code>${body}</code></pre>`;
    },
  },
};
const plain = new Marked(options);
const withFormulas = new Marked(options, formulaSyntax(formulaHtml));

/** A line that starts 100 nested quotes or lists. The parser is slow for them and overflows its stack for thousands. */
const TOO_NESTED = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])){100}/m;

export interface ParsedMarkdown {
  html: string;
  /** The text has a formula, rendered or not. */
  hasFormula: boolean;
}

/**
 * The HTML of a Markdown text. Text that is nested too deeply or takes too long becomes preformatted text. Without a `renderer` the source
 * of formulas is shown.
 */
export function htmlOf(source: string, renderer: FormulaRenderer | null = null): ParsedMarkdown {
  try {
    deadline = performance.now() + PARSE_MS;
    [renderFormula, hasFormula] = [renderer, false];
    const marked = mayHaveFormula(source) ? withFormulas : plain;
    if (!TOO_NESTED.test(source)) return { html: marked.parse(source) as string, hasFormula };
  } catch {
    // The deadline passed, or the stack overflowed.
  }
  return { html: `<pre><code>${escapeHtml(source)}</code></pre>`, hasFormula: false };
}

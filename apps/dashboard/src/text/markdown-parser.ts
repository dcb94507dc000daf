import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import typescript from 'highlight.js/lib/languages/typescript';
import { Marked } from 'marked';

/**
 * Untrusted Markdown to HTML. Raw HTML is shown as the text it is; images are never loaded, their address is shown; links keep only http and
 * https. `markdown.ts` lets what is left through an allowlist: nobody else may show what this makes.
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

/** A person waits for so long at most, ms: what takes longer is shown as it was written. The parser's searches for the end of an emphasis may be cubic. */
const PARSE_MS = 300;
let deadline = 0;
function inTime(): false {
  if (performance.now() > deadline) throw new Error('This takes too long as Markdown.');
  return false;
}

const marked = new Marked({
  gfm: true,
  async: false,
  // Asked first of every piece of a text, and of every piece of a line: they only look at the clock.
  tokenizer: { space: inTime, escape: inTime },
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
});

/** Quotes and lists inside of each other, as one line begins them; the parser's stack does not hold thousands, and it is slow before that. */
const NESTED = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])){100}/m;

/** As HTML; what is nested too deeply to be parsed, or takes too long, as the text it is. */
export function htmlOf(source: string): string {
  try {
    deadline = performance.now() + PARSE_MS;
    if (!NESTED.test(source)) return marked.parse(source) as string;
  } catch {
    // Too long, or its stack was too small all the same.
  }
  return `<pre><code>${escapeHtml(source)}</code></pre>`;
}

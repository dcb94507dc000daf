import DOMPurify from 'dompurify';
import hljs from 'highlight.js/lib/core';
import bash from 'highlight.js/lib/languages/bash';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import typescript from 'highlight.js/lib/languages/typescript';
import { Marked } from 'marked';
import { markInvisible } from './invisible.ts';

/**
 * Untrusted Markdown to safe HTML. Raw HTML is shown as the text it is; images are never loaded, their address is shown;
 * links keep only http and https. What is left passes an allowlist (DOMPurify), and the result is a TrustedHTML where the
 * browser has Trusted Types, so that the page's CSP accepts it and nothing else.
 */
hljs.registerLanguage('bash', bash);
hljs.registerLanguage('json', json);
hljs.registerLanguage('python', python);
hljs.registerLanguage('typescript', typescript);

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };
const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (character) => entities[character]!);

export function safeLink(href: string): string | null {
  try {
    const url = new URL(href);
    return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : null;
  } catch {
    return null;
  }
}

const marked = new Marked({
  gfm: true,
  async: false,
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

const allowed = {
  ALLOWED_TAGS:
    'a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre s span strong sub sup table tbody td th thead tr ul'.split(' '),
  ALLOWED_ATTR: ['href', 'target', 'rel', 'class', 'start'],
  ALLOWED_URI_REGEXP: /^https?:/i,
  // Their values are no addresses: without this the pattern above would take them away.
  ADD_URI_SAFE_ATTR: ['target', 'rel', 'start'],
  SANITIZE_NAMED_PROPS: true,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
};

interface TrustedPolicy {
  createHTML(text: string): string;
}
const factory = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: TrustedPolicy): TrustedPolicy } }).trustedTypes;
const policy = factory?.createPolicy('palestra-markdown', { createHTML: (text) => DOMPurify.sanitize(text, allowed) });

/** Quotes and lists inside of each other, as one line begins them; the parser's stack does not hold thousands, and it is slow before that. */
const NESTED = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])){100}/m;

/** As HTML; what is nested too deeply to be parsed, as the text it is. */
function htmlOf(source: string): string {
  try {
    if (!NESTED.test(source)) return marked.parse(source) as string;
  } catch {
    // Its stack was too small all the same.
  }
  return `<pre><code>${escapeHtml(source)}</code></pre>`;
}

const cache = new Map<string, string>();
const cacheLimit = 500;

/** The HTML (a TrustedHTML object where supported) for `dangerouslySetInnerHTML`; cached by source. */
export function renderMarkdown(source: string): string {
  const known = cache.get(source);
  if (known !== undefined) return known;
  const html = htmlOf(markInvisible(source));
  const safe = policy ? policy.createHTML(html) : DOMPurify.sanitize(html, allowed);
  if (cache.size >= cacheLimit) cache.delete(cache.keys().next().value!);
  cache.set(source, safe);
  return safe;
}

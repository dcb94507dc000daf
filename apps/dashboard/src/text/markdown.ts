import DOMPurify from 'dompurify';
import { LRUCache } from 'lru-cache';
import { markInvisible } from './invisible.ts';
import type { FormulaRenderer } from './formula-loader.ts';
import { htmlOf, type ParsedMarkdown } from './markdown-parser.ts';

/**
 * Converts untrusted Markdown to safe HTML. DOMPurify applies an allowlist to the output of the parser. In browsers with Trusted Types the
 * result is a TrustedHTML, which the content security policy of the page requires.
 */
const html = 'a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre s span strong sub sup table tbody td th thead tr ul'.split(
  ' ',
);
/** What formulas need, without links, scripts, styles and colours, which can hide text. */
const mathMl =
  'math menclose mfrac mi mmultiscripts mn mo mover mpadded mphantom mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover'.split(
    ' ',
  );
const mathMlAttributes =
  'accent accentunder columnalign columnlines columnspacing depth display displaystyle fence form height largeop linethickness lspace mathvariant maxsize minsize movablelimits notation rowlines rowspacing rspace scriptlevel separator stretchy symmetric voffset width'.split(
    ' ',
  );
const allowed = {
  ALLOWED_TAGS: [...html, ...mathMl],
  ALLOWED_ATTR: ['href', 'target', 'rel', 'class', 'start', 'title', ...mathMlAttributes],
  ALLOWED_URI_REGEXP: /^https?:/i,
  // Not URLs. Without this the pattern above would remove them.
  ADD_URI_SAFE_ATTR: ['target', 'rel', 'start', ...mathMlAttributes],
  SANITIZE_NAMED_PROPS: true,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
};

interface TrustedPolicy {
  createHTML(text: string): string;
}
const factory = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: TrustedPolicy): TrustedPolicy } }).trustedTypes;
const policy = factory?.createPolicy('palestra-markdown', { createHTML: (text) => DOMPurify.sanitize(text, allowed) });

interface Rendered extends ParsedMarkdown {
  renderer: FormulaRenderer | null;
}
const cache = new LRUCache<string, Rendered>({ max: 500 });

/** The HTML (a TrustedHTML object where supported) for `dangerouslySetInnerHTML`; cached by source. */
export function renderMarkdown(source: string, renderer: FormulaRenderer | null): ParsedMarkdown {
  const known = cache.get(source);
  if (known && (!known.hasFormula || known.renderer === renderer)) return known;
  const { html: unsafe, hasFormula } = htmlOf(markInvisible(source), renderer);
  const safe = policy ? policy.createHTML(unsafe) : DOMPurify.sanitize(unsafe, allowed);
  const rendered = { html: safe, hasFormula, renderer };
  cache.set(source, rendered);
  return rendered;
}

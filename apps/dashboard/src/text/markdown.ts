import DOMPurify from 'dompurify';
import { LRUCache } from 'lru-cache';
import { markInvisible } from './invisible.ts';
import { htmlOf } from './markdown-parser.ts';

/**
 * Converts untrusted Markdown to safe HTML. DOMPurify applies an allowlist to the output of the parser. In browsers with Trusted Types the
 * result is a TrustedHTML, which the content security policy of the page requires.
 */
const allowed = {
  ALLOWED_TAGS:
    'a b blockquote br code del em h1 h2 h3 h4 h5 h6 hr i li ol p pre s span strong sub sup table tbody td th thead tr ul'.split(' '),
  ALLOWED_ATTR: ['href', 'target', 'rel', 'class', 'start'],
  ALLOWED_URI_REGEXP: /^https?:/i,
  // Not URLs. Without this the pattern above would remove them.
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

const cache = new LRUCache<string, string>({ max: 500 });

/** The HTML (a TrustedHTML object where supported) for `dangerouslySetInnerHTML`; cached by source. */
export function renderMarkdown(source: string): string {
  const known = cache.get(source);
  if (known !== undefined) return known;
  const html = htmlOf(markInvisible(source));
  const safe = policy ? policy.createHTML(html) : DOMPurify.sanitize(html, allowed);
  cache.set(source, safe);
  return safe;
}

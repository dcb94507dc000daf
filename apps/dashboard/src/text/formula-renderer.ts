import katex from 'katex';
import './formula.css';
import { withAlphabets } from './formula-letters.ts';
import type { Formula } from './formula-syntax.ts';

/** Nested elements. Browsers lay out deeply nested fractions slowly. */
const MAX_DEPTH = 60;
/** Characters of MathML. A macro can make a short formula long. */
const MAX_OUTPUT = 50_000;
/** KaTeX uses it only for commands that need trust, such as `\href`. It is not a colour of anything else. */
const REFUSED = '#cc0001';

function depthOf(markup: string): number {
  let [depth, deepest] = [0, 0];
  for (const [tag] of markup.matchAll(/<\/?[a-z][^<>]*>/g)) {
    if (tag.endsWith('/>')) continue;
    depth += tag.startsWith('</') ? -1 : 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

/**
 * The MathML of an untrusted formula; null if it has an error, uses a command that needs trust, or becomes too large. MathML needs no inline
 * styles, which the content security policy forbids, and one font. The result is not safe by itself: `markdown.ts` applies an allowlist.
 */
export function renderFormula({ tex, display }: Formula): string | null {
  try {
    const html = katex.renderToString(tex, {
      output: 'mathml',
      displayMode: display,
      trust: false,
      strict: 'ignore',
      throwOnError: true,
      errorColor: REFUSED,
      maxExpand: 200,
      maxSize: 20,
    });
    if (html.length > MAX_OUTPUT || html.includes(REFUSED) || depthOf(html) > MAX_DEPTH) return null;
    // The source is the title of the formula. Parsing a style attribute would violate the content security policy.
    return withAlphabets(html.replace(/<annotation[^>]*>[\s\S]*<\/annotation>/, '').replaceAll(/ style="[^"]*"/g, ''));
  } catch {
    // A syntax error, a macro without end, or too deeply nested groups.
    return null;
  }
}

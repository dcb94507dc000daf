import { memo, useEffect, useSyncExternalStore } from 'react';
import { formulaRenderer, loadFormulas, onFormulasLoaded } from './formula-loader.ts';
import { renderMarkdown } from './markdown.ts';

/** Untrusted Markdown. The renderer of formulas loads when the first text has one; until then the page shows their source. */
export const Markdown = memo(function Markdown({ source, className = '' }: { source: string; className?: string }) {
  const renderer = useSyncExternalStore(onFormulasLoaded, formulaRenderer);
  const { html, hasFormula } = renderMarkdown(source, renderer);
  useEffect(() => {
    if (hasFormula) loadFormulas();
  }, [hasFormula]);
  return <div className={`prose ${className}`} dangerouslySetInnerHTML={{ __html: html }} />;
});

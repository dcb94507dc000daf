import { memo } from 'react';
import { renderMarkdown } from './markdown.ts';

export const Markdown = memo(function Markdown({ source, className = '' }: { source: string; className?: string }) {
  return <div className={`prose ${className}`} dangerouslySetInnerHTML={{ __html: renderMarkdown(source) }} />;
});

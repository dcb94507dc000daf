import path from 'node:path';
import type { OpenEnvManifest } from './openenv-manifest.ts';
import { readText } from './read-text.ts';

/** Description and README of a folder. */
export interface Card {
  description: string;
  readme: string | null;
}

export async function cardOf(folder: string, manifest: OpenEnvManifest | null): Promise<Card> {
  const text = await readText(path.join(folder, 'README.md')).catch(() => null);
  const readme = text === null ? null : withoutFrontMatter(text);
  const summary = manifest?.description ?? firstSentence(readme ?? '');
  const version = manifest?.version == null ? '' : `version ${manifest.version}`;
  return { description: [summary, version].filter(Boolean).join(' · '), readme };
}

/** A valid environment name from the name of a folder or an image. */
export const nameFrom = (text: string): string =>
  text
    .replaceAll(/[^A-Za-z0-9_-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 64);

/** Removes the front matter, in which Hugging Face Spaces keep their settings. */
const withoutFrontMatter = (text: string): string => text.replace(/^\uFEFF?---\r?\n.*?\r?\n---\r?\n/s, '').trimStart();

/** The first paragraph that is not a heading, image, list or code. */
function firstSentence(markdown: string): string {
  const paragraph = markdown.split(/\r?\n\s*\r?\n/).find((part) => /^[A-Za-z*_`[]/.test(part.trim()) && !part.trim().startsWith('```'));
  return (paragraph ?? '').trim().replaceAll(/\s+/g, ' ').slice(0, 300);
}

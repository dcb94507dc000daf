import { regexFinder, type Snippet, snippetOf } from './snippet.ts';

export interface RegexInput {
  pattern: string;
  texts: string[];
  /** How many texts that match are wanted: the search ends there. */
  limit: number;
}

/** Runs in a process of its own (UntrustedWork): users choose the pattern, models the texts. Returns a snippet per text that was searched; null: no match. */
export default function findRegex({ pattern, texts, limit }: RegexInput): (Snippet | null)[] {
  const find = regexFinder(pattern);
  const snippets: (Snippet | null)[] = [];
  let matches = 0;
  for (const text of texts) {
    const snippet = snippetOf(text, find);
    snippets.push(snippet);
    if (snippet !== null && (matches += 1) === limit) break;
  }
  return snippets;
}

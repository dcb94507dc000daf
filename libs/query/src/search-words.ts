/**
 * The words of a text for the index and for phrases: runs of letters and digits in lower case. PostgreSQL's own parser keeps host names,
 * paths, e-mail addresses, numbers and HTML entities whole and would not find `bar` in `foo.bar()`. A tsvector of these words, joined
 * by spaces, finds what `matches` finds.
 */
export function searchWords(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
}

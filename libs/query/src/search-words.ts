/**
 * The words that a phrase is made of, and by which it is found: runs of letters and digits in lower case. PostgreSQL's own parser keeps host
 * names, file paths, e-mail addresses, signed and decimal numbers and HTML entities whole, so that `bar` is not found in `foo.bar()`, nor
 * `usr` in /usr/bin: a tsvector of a raw text finds a part of what `matches` finds, one of these words joined by spaces finds the same.
 */
export function searchWords(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
}

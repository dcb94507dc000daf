export const OUTPUT_FORMATS = ['table', 'json', 'yaml', 'jsonl'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

export const isOutputFormat = (text: string): text is OutputFormat => OUTPUT_FORMATS.some((format) => format === text);

/**
 * The output format in the words of a command line, also where they are wrong: the error of a wrong option must have the format that the
 * caller reads.
 */
export function requestedFormat(words: readonly string[]): OutputFormat {
  for (const [at, word] of words.entries()) {
    if (word === '--') break;
    const value = /^(?:-o=?|--output=)(.+)$/.exec(word)?.[1] ?? (word === '-o' || word === '--output' ? words[at + 1] : undefined);
    if (value !== undefined && isOutputFormat(value)) return value;
  }
  return 'table';
}

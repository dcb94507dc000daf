/** The command line that continues an evaluation. `words`: its arguments, which contain no key. */
export function resumeLine(words: readonly string[], run: string): string {
  const hasRun = words.some((word) => word === '--run' || word.startsWith('--run='));
  const more = [...(hasRun ? [] : ['--run', run]), ...(words.includes('--resume') ? [] : ['--resume'])];
  return ['palestra', ...words, ...more].map(quoted).join(' ');
}

const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`);

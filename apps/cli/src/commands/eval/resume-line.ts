import { quoted } from '../../shell-word.ts';

/** The command line that continues an evaluation. `words`: its arguments, which contain no key. */
export function resumeLine(words: readonly string[], run: string): string {
  const hasRun = words.some((word) => word === '--run' || word.startsWith('--run='));
  const more = [...(hasRun ? [] : ['--run', run]), ...(words.includes('--resume') ? [] : ['--resume'])];
  return ['palestra', ...words, ...more].map(quoted).join(' ');
}

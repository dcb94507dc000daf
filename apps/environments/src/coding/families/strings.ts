import type { SeededRandom } from '@palestra/environment-kit';
import { combine, defineFamily, text, times, words } from './family.ts';

const VOWELS = 'aeiou';

export const runLengths = defineFamily(
  'run_lengths',
  combine({ least: [1, 2, 3], countFirst: [true, false], fold: [false, true] }),
  ({ least, countFirst, fold }) => ({
    level: least === 1 ? 1 : 2,
    parameters: 'text',
    statement: `
      A run is a maximal stretch of equal characters in \`text\`. ${fold ? 'Change all letters to lower case first. ' : ''}Return the text in which ${
        least === 1 ? 'every run' : `every run of at least ${least} characters`
      } is replaced by ${countFirst ? 'its length followed by its character' : 'its character followed by its length'}.${
        least === 1 ? '' : ' Shorter runs stay as they are.'
      }

      \`text\` has at most 8000 characters, all of them letters; it may be empty.`,
    reference: (given: string) =>
      (fold ? given.toLowerCase() : given).replaceAll(/(.)\1*/g, (run, letter: string) => {
        if (run.length < least) return run;
        return countFirst ? `${run.length}${letter}` : `${letter}${run.length}`;
      }),
    python: `
      def solve(text):
          text = text${fold ? '.lower()' : ''}
          parts = []
          start = 0
          for end in range(1, len(text) + 1):
              if end == len(text) or text[end] != text[start]:
                  length = end - start
                  if length >= ${least}:
                      parts.append(${countFirst ? 'str(length) + text[start]' : 'text[start] + str(length)'})
                  else:
                      parts.append(text[start:end])
                  start = end
          return "".join(parts)`,
    mistakes: [
      ['len(text) + 1', 'len(text)'],
      [`length >= ${least}`, `length > ${least}`],
    ],
    inputs: (random) => [
      ['aaabccd'],
      ['AaBBBbz'],
      ['xxxxxxxxxxxxyx'],
      [''],
      ['q'],
      ['zz'],
      ...times(6, () => [text(random, random.integer(5, 40), 'aAbB')]),
      [text(random, 3000, 'abc')],
      ['k'.repeat(8000)],
    ],
  }),
);

const SELECTED = {
  second: {
    says: 'every second word (the 2nd, the 4th and so on)',
    test: (_: string, index: number) => index % 2 === 1,
    python: 'index % 2 == 1',
  },
  third: {
    says: 'every third word (the 3rd, the 6th and so on)',
    test: (_: string, index: number) => index % 3 === 2,
    python: 'index % 3 == 2',
  },
  long: { says: 'each word of more than four letters', test: (word: string) => word.length > 4, python: 'len(word) > 4' },
  vowel: {
    says: 'each word that begins with a vowel (a, e, i, o, u)',
    test: (word: string) => VOWELS.includes(word[0]!),
    python: 'word[0] in "aeiou"',
  },
} as const;
const rotate = (word: string, by: number) => word.replaceAll(/[a-z]/g, (c) => String.fromCharCode(97 + ((c.charCodeAt(0) - 97 + by) % 26)));
const CHANGED = {
  reverse: { says: 'reversed', change: (word: string) => [...word].toReversed().join(''), python: 'word[::-1]' },
  shout: { says: 'in capital letters, followed by "!"', change: (word: string) => `${word.toUpperCase()}!`, python: 'word.upper() + "!"' },
  rotate: {
    says: 'with each letter moved five places on in the alphabet (after z comes a)',
    change: (word: string) => rotate(word, 5),
    python: '"".join(chr(97 + (ord(letter) - 97 + 5) % 26) for letter in word)',
  },
  squeeze: {
    says: 'without its vowels (a, e, i, o, u), but with its length in front, for example "4pr" for "pear"',
    change: (word: string) => word.length + word.replaceAll(/[aeiou]/g, ''),
    python: 'str(len(word)) + "".join(letter for letter in word if letter not in "aeiou")',
  },
} as const;

export const wordRules = defineFamily(
  'word_rules',
  combine({ selected: ['second', 'third', 'long', 'vowel'], changed: ['reverse', 'shout', 'rotate', 'squeeze'] } as const),
  ({ selected, changed }) => ({
    level: 1,
    parameters: 'text',
    statement: `
      \`text\` has words of lower-case letters, separated by single spaces; it may be empty. Return the text with ${SELECTED[selected].says} ${CHANGED[changed].says}. All other words and the spaces stay.`,
    reference: (given: string) =>
      given === ''
        ? ''
        : given
            .split(' ')
            .map((word, index) => (SELECTED[selected].test(word, index) ? CHANGED[changed].change(word) : word))
            .join(' '),
    python: `
      def solve(text):
          if not text:
              return ""
          result = []
          for index, word in enumerate(text.split(" ")):
              if ${SELECTED[selected].python}:
                  word = ${CHANGED[changed].python}
              result.append(word)
          return " ".join(result)`,
    mistakes: [
      [`if ${SELECTED[selected].python}`, `if not (${SELECTED[selected].python})`],
      ['" ".join(result)', '" ".join(result[:-1])'],
    ],
    inputs: (random) => [
      ['an olive tree in the north'],
      ['zebra zone every quiz'],
      [words(random, 7).join(' ')],
      [''],
      ['owl'],
      ['thorn'],
      ...times(8, () => [words(random, random.integer(2, 30)).join(' ')]),
      [words(random, 1500).join(' ')],
    ],
  }),
);

const WINDOW_RULES = {
  distinct: { says: (k: number) => `has at most ${k} different letters`, python: 'len(counts) >' },
  vowels: { says: (k: number) => `has at most ${k} vowels (a, e, i, o, u)`, python: 'vowels >' },
  repeats: { says: (k: number) => `has no letter more than ${k} times`, python: 'counts.get(letter, 0) >' },
} as const;

export const textWindows = defineFamily(
  'text_windows',
  combine({ rule: ['distinct', 'vowels', 'repeats'], most: [2, 3], longest: [true, false] } as const),
  ({ rule, most, longest }) => ({
    level: longest ? 3 : 4,
    parameters: 'text',
    statement: `
      A substring is a contiguous, non-empty part of \`text\`; two substrings at different places count as two even if they are equal. Return ${
        longest ? 'the length of the longest substring' : 'the number of substrings'
      } that ${WINDOW_RULES[rule].says(most)}. Return 0 if there is none.

      \`text\` has at most 40,000 lower-case letters; it may be empty.`,
    reference(given: string) {
      const fits = {
        distinct: (part: Map<string, number>) => part.size <= most,
        vowels: (part: Map<string, number>) => [...VOWELS].reduce((sum, vowel) => sum + (part.get(vowel) ?? 0), 0) <= most,
        repeats: (part: Map<string, number>) => [...part.values()].every((count) => count <= most),
      }[rule];
      const part = new Map<string, number>();
      let [start, best, total] = [0, 0, 0];
      for (let end = 0; end < given.length; end += 1) {
        part.set(given[end]!, (part.get(given[end]!) ?? 0) + 1);
        for (; !fits(part); start += 1) {
          const left = part.get(given[start]!)! - 1;
          if (left === 0) part.delete(given[start]!);
          else part.set(given[start]!, left);
        }
        best = Math.max(best, end - start + 1);
        total += end - start + 1;
      }
      return longest ? best : total;
    },
    python: `
      def solve(text):
          counts = {}
          vowels = start = best = total = 0
          for end, letter in enumerate(text):
              counts[letter] = counts.get(letter, 0) + 1
              vowels += letter in "aeiou"
              while ${WINDOW_RULES[rule].python} ${most}:
                  first = text[start]
                  start += 1
                  vowels -= first in "aeiou"
                  counts[first] -= 1
                  if counts[first] == 0:
                      del counts[first]
              best = max(best, end - start + 1)
              total += end - start + 1
          return ${longest ? 'best' : 'total'}`,
    mistakes: [
      [`${WINDOW_RULES[rule].python} ${most}`, `${WINDOW_RULES[rule].python}= ${most}`],
      ...(longest ? [] : [['while ', 'if '] as [string, string]]),
    ],
    slow: [
      `
      def solve(text):
          best = total = 0
          for start in range(len(text)):
              counts = {}
              vowels = 0
              for end in range(start, len(text)):
                  letter = text[end]
                  counts[letter] = counts.get(letter, 0) + 1
                  vowels += letter in "aeiou"
                  if ${WINDOW_RULES[rule].python} ${most}:
                      break
                  best = max(best, end - start + 1)
                  total += 1
          return ${longest ? 'best' : 'total'}`,
    ].slice(rule === 'repeats' ? 1 : 0),
    inputs: (random) => [
      ['abcab'],
      ['queueing'],
      [text(random, 12, 'abe')],
      [''],
      ['a'],
      ['aaaaeee'],
      ['bcbcbdbdbaaaaeaaaiaaa'],
      ...times(6, () => [text(random, random.integer(10, 60), random.pick(['ab', 'abcde', 'aeixyz']))]),
      [text(random, 20_000, 'aebcdfgh')],
      [rule === 'vowels' ? 'b'.repeat(40_000) : 'ab'.repeat(20_000)],
    ],
  }),
);

const BRACKET_RESULTS = {
  depth: 'the largest number of brackets that are open at the same time, or -1 if the text is not balanced',
  fault:
    'the index of the first closing bracket that has no open bracket to close, or one of another kind; without such a bracket, the length of the text if a bracket is still open at the end, and -1 if the text is balanced',
  pairs:
    'the list of pairs [index of the opening bracket, index of its closing bracket], ordered by the first index, or an empty list if the text is not balanced',
  open: 'the number of brackets that are still open at the end, or -1 if a closing bracket has no open bracket to close, or one of another kind',
} as const;

export const brackets = defineFamily(
  'brackets',
  combine({ result: ['depth', 'fault', 'pairs', 'open'], kinds: ['()', '()[]{}'], quotes: [false, true] } as const),
  ({ result, kinds, quotes }) => ({
    level: kinds.length > 2 || quotes ? 3 : 2,
    parameters: 'text',
    statement: `
      \`text\` has brackets (${kinds.length === 2 ? 'only ( and ) count' : '( ), [ ] and { }'}) among other characters, which are ignored.${
        quotes ? " Everything between two apostrophes (') is ignored, too; an apostrophe without a partner hides the rest of the text." : ''
      } The text is balanced if each closing bracket closes the most recently opened bracket that is still open${
        kinds.length > 2 ? ' and is of the same kind' : ''
      }, and no bracket is open at the end. Return ${BRACKET_RESULTS[result]}.

      \`text\` has at most 3000 characters; it may be empty.`,
    reference(given: string) {
      const open: number[] = [];
      const pairs: [number, number][] = [];
      let [deepest, hidden, fault] = [0, false, -1];
      for (const [index, character] of [...given].entries()) {
        if (quotes && character === "'") hidden = !hidden;
        const kind = hidden ? -1 : kinds.indexOf(character);
        if (kind < 0) continue;
        if (kind % 2 === 0) deepest = Math.max(deepest, open.push(index));
        else {
          const last = open.at(-1);
          if (last === undefined || given[last] !== kinds[kind - 1]) {
            fault = index;
            break;
          }
          pairs.push([open.pop()!, index]);
        }
      }
      const balanced = fault < 0 && open.length === 0;
      return {
        depth: balanced ? deepest : -1,
        fault: fault >= 0 ? fault : balanced ? -1 : given.length,
        pairs: balanced ? pairs.toSorted(([a], [b]) => a - b) : [],
        open: fault >= 0 ? -1 : open.length,
      }[result];
    },
    python: `
      def solve(text):
          closers = {${kinds.length === 2 ? '")": "("' : '")": "(", "]": "[", "}": "{"'}}
          openers = set(closers.values())
          stack = []
          pairs = []
          deepest = 0
          fault = None
          hidden = False
          for index, c in enumerate(text):
              if ${quotes ? 'c == "\'"' : 'False'}:
                  hidden = not hidden
              elif hidden:
                  continue
              elif c in openers:
                  stack.append(index)
                  deepest = max(deepest, len(stack))
              elif c in closers:
                  if not stack or text[stack[-1]] != closers[c]:
                      fault = index
                      break
                  pairs.append([stack.pop(), index])
          balanced = fault is None and not stack
          ${
            {
              depth: 'return deepest if balanced else -1',
              fault: 'return fault if fault is not None else -1 if balanced else len(text)',
              pairs: 'return sorted(pairs) if balanced else []',
              open: 'return len(stack) if fault is None else -1',
            }[result]
          }`,
    mistakes: [
      ['not stack or', 'stack and'],
      ...(kinds.length > 2 ? [[' or text[stack[-1]] != closers[c]', ''] as [string, string]] : []),
      ...(quotes ? [['elif hidden', 'elif False'] as [string, string]] : []),
    ],
    inputs: (random) => [
      ['a(b)c(d(e))'],
      [')('],
      ["(]'(')"],
      [''],
      ["''"],
      ['((((('],
      ["({[()]}[])'"],
      ["('(')(x)"],
      ['f(a[1], {b: (c)})'],
      ['(())()((()))'],
      ['([)]'],
      [')a('],
      ...times(10, () => [bracketText(random, kinds, quotes, result, random.integer(4, 40))]),
      [bracketText(random, kinds, quotes, result, 600)],
    ],
  }),
);

/** A text for which the result is seldom the trivial one. */
function bracketText(random: SeededRandom, kinds: string, quotes: boolean, result: keyof typeof BRACKET_RESULTS, pairs: number): string {
  let made = '';
  const open: string[] = [];
  for (let left = pairs; left > 0 || open.length > 0;) {
    if (left > 0 && (open.length === 0 || random.next() < 0.55)) {
      const kind = 2 * random.integer(0, kinds.length / 2 - 1);
      made += kinds[kind]!;
      open.push(kinds[kind + 1]!);
      left -= 1;
    } else made += open.pop()!;
    if (random.next() < 0.2) made += quotes ? random.pick(["'(('", "')'", "''"]) : 'x';
  }
  if (result === 'open') return made + times(random.integer(1, 9), () => kinds[0]!).join('');
  if (result !== 'fault') return made;
  let at = random.integer(Math.floor(made.length / 4), made.length);
  // Outside of apostrophes.
  while (made.slice(0, at).split("'").length % 2 === 0) at += 1;
  return made.slice(0, at) + kinds[1]!.repeat(random.integer(1, 9)) + made.slice(at);
}

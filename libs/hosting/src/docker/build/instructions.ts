import { HostingError } from '../../provider/hosting-error.ts';

export interface Instruction {
  /** In upper case, without ONBUILD. */
  name: string;
  /** The name as it is written, with ONBUILD. */
  head: string;
  /** As they are written, in ASCII. `plain` removes their quotes. */
  flags: string[];
  rest: string;
  /** Indexes of its first and last line. */
  first: number;
  last: number;
  /** It may be a line of a heredoc, which is no instruction for new builders. */
  inHeredoc: boolean;
}

/** Words at the beginning that start with "--", with quoted and escaped characters. */
const FLAG = /--(?:"(?:\\[^]|[^"\\])*"|'(?:\\[^]|[^'\\])*'|\\[^]|[^\s"'\\])+/;
const FLAGS = new RegExp(`^(?:\\s+${FLAG.source})*`);
const FLAG_OF = new RegExp(FLAG, 'g');
/** The space that only Go knows, and the one that only JavaScript knows. */
const ODD_START = /^[\s\u0085]*[\u0085\ufeff]/;
/** A word "<<NAME" or "<<-NAME". What is no heredoc for a builder is taken for one rather than the other way round. */
const HEREDOC = /(?:^|[\s}"'])\d*<<(-?)((?:'[^']*'|"(?:\\[^]|[^"\\])*"|\\[^]|[^\s'"\\])+)/g;

export const linesOf = (dockerfile: string): string[] => dockerfile.replace(/^\ufeff/, '').split(/\r?\n/);

/**
 * The instructions of a Dockerfile, as Docker and Podman find them (`dockerfile/parser` of moby/buildkit and openshift/imagebuilder): a backslash
 * at the end of a line continues it, also over comments and empty lines, and nothing comes between the joined lines. The lines of a heredoc are
 * instructions too, because old builders run them. Throws `source_invalid` for text that builders read in different ways.
 */
export function instructionsOf(dockerfile: string): Instruction[] {
  const found: Instruction[] = [];
  const heredocs: Heredoc[] = [];
  let open: Joined | null = null;
  const add = (one: Instruction | null) => {
    if (one === null) return;
    found.push(one);
    if (!one.inHeredoc && /^(?:RUN|COPY|ADD)$/.test(one.name)) heredocs.push(...heredocsOf(one));
  };
  for (const [index, line] of linesOf(dockerfile).entries()) {
    if (heredocs[0] !== undefined && isEnd(line, heredocs[0])) heredocs.shift();
    if (ODD_START.test(line)) throw unclear(index, 'it begins with an invisible character. Remove it');
    if (/^\s*#\s*escape\s*=\s*`/i.test(line)) throw unclear(index, '"# escape=`" is not supported. Continue lines with a backslash');
    if (/^\s*(?:#|$)/.test(line)) continue;
    if (/\\\\[ \t]*$/.test(line)) throw unclear(index, 'it ends with two backslashes. End it with one, or with another character');
    const joined: Joined = open ?? { text: '', first: index, last: index, inHeredoc: heredocs.length > 0 };
    const text = line.replace(/\\[ \t]*$/, '');
    open = { ...joined, text: joined.text + text, last: index };
    if (text !== line) continue;
    add(parse(open));
    open = null;
  }
  if (open !== null) add(parse(open));
  return found;
}

type Joined = Pick<Instruction, 'first' | 'last' | 'inHeredoc'> & { text: string };

function parse({ text, ...where }: Joined): Instruction | null {
  const [head, name] = /^\s*(?:ONBUILD\s+)*([A-Za-z]+)(?=\s|$)/i.exec(text) ?? [];
  if (head === undefined || name === undefined) return null;
  const [flags] = FLAGS.exec(text.slice(head.length)) ?? [''];
  const rest = text.slice(head.length + flags.length).trim();
  // Builders take some bytes of such characters for spaces.
  if (/[^\t-\r\x20-\x7e]/.test(flags)) throw unclear(where.first, `the flags of ${name} have characters that are not ASCII`);
  return { name: name.toUpperCase(), head, flags: flags.match(FLAG_OF) ?? [], rest, ...where };
}

interface Heredoc {
  name: string;
  /** Tabs before its end are ignored. */
  isIndented: boolean;
}

function heredocsOf({ rest, first }: Instruction): Heredoc[] {
  return [...rest.matchAll(HEREDOC)].map(([, dash, word]) => {
    // Such an end could also continue its line.
    if (word!.includes('\\')) throw unclear(first, 'the word after "<<" has a backslash');
    return { name: plain(word!), isIndented: dash === '-' };
  });
}

const isEnd = (line: string, { name, isIndented }: Heredoc): boolean => (isIndented ? line.replace(/^\t+/, '') : line) === name;

/** A flag or word without quotes and escapes. */
export const plain = (text: string): string => text.replaceAll(/["'\\]/g, '');

const unclear = (index: number, why: string) =>
  new HostingError('source_invalid', `Line ${index + 1} of the Dockerfile cannot be used: ${why}.`);

import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/** The code blocks of the documents, and how they run as one program of the shell. */
export const root = path.resolve(import.meta.dirname, '../../..');

export interface Snippet {
  file: string;
  line: number;
  /** `sh`, `python`, `ts`, ... */
  language: string;
  code: string;
  /** Why it is not run: `<!-- not run: REASON -->` before it. */
  notRun: string | null;
}

const BLOCK = /^(?:<!-- not run: (?<reason>[^]+?) -->\n\n?)?```(?<language>[a-z]+)\n(?<code>[^]*?)^```$/gm;
/** Diagrams and output are no code. */
const TEXT = new Set(['mermaid', 'text']);

const documents = (): string[] => [
  'README.md',
  'CONTRIBUTING.md',
  'integrations/python/README.md',
  ...readdirSync(path.join(root, 'libs')).map((name) => `libs/${name}/README.md`),
  ...readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

const readIfThere = (file: string): string => {
  try {
    return readFileSync(path.join(root, file), 'utf8');
  } catch {
    return '';
  }
};

export const snippetsOf = (file: string, text = readIfThere(file)): Snippet[] =>
  [...text.matchAll(BLOCK)].map((match) => ({
    file,
    line: text.slice(0, match.index).split('\n').length,
    language: match.groups!['language']!,
    code: match.groups!['code']!,
    notRun: match.groups!['reason'] ?? null,
  }));

export const allSnippets = (): Snippet[] =>
  documents()
    .flatMap((file) => snippetsOf(file))
    .filter(({ language }) => !TEXT.has(language));

const FILE_NAME = /^(?:#|\/\/) ([\w.-]+\.(?:py|mjs|ts))$/m;
const HEREDOC = 'END_OF_SNIPPET';
/** How a program without a name runs at its place. */
const RUNNERS: Record<string, (at: number) => [file: string, command: string]> = {
  python: (at) => [`block${at}.py`, `python3 block${at}.py`],
  ts: (at) => [
    `block${at}.ts`,
    `npx tsc --strict --skipLibCheck --module nodenext --target es2022 --lib esnext --types node block${at}.ts && node block${at}.js`,
  ],
};

/** A program of the shell that does what a reader of the document does: saves files under their names, and types the rest. */
export function programOf(snippets: Snippet[]): string {
  const parts = snippets.map(({ language, code }, at) => {
    if (language === 'sh') return code;
    const name = code.startsWith('#') || code.startsWith('//') ? FILE_NAME.exec(code.split('\n', 1)[0]!)?.[1] : undefined;
    if (name !== undefined) return `cat > ${name} <<'${HEREDOC}'\n${code}${HEREDOC}\n`;
    const runner = RUNNERS[language];
    if (!runner) throw new Error(`no way to run ${language}`);
    const [file, command] = runner(at);
    return `cat > ${file} <<'${HEREDOC}'\n${code}${HEREDOC}\n${command}\n`;
  });
  return `set -euo pipefail\n${parts.join('\n')}`;
}

/**
 * Programs in front of those of the machine: they install nothing, because everything is there already, and `palestra up` finds a service
 * that runs. tests/packages installs the packages and starts the service.
 */
export function writeTools(folder: string, pythonProgram: string): void {
  mkdirSync(folder, { recursive: true });
  const cli = path.join(root, 'apps/cli/bin/palestra.cjs');
  const write = (file: string, body: string) => {
    writeFileSync(file, `#!/usr/bin/env bash\n${body}\n`);
    chmodSync(file, 0o755);
  };
  const rest = (name: string) => `exec "$(PATH="\${PATH#*:}" command -v ${name})" "$@"`;
  write(path.join(folder, 'palestra'), `[ "\${1:-}" != up ] || exit 0\nexec node ${cli} "$@"`);
  // Status 5 says that a check failed, which is about the machine.
  const npx = `if [ "$1" = palestra ]; then shift; palestra "$@" || { status=$?; [ "$1" = doctor ] && [ $status -eq 5 ]; }; exit; fi`;
  write(path.join(folder, 'npx'), `[ "$1" != tsc ] || exec node ${root}/node_modules/typescript/bin/tsc "\${@:2}"\n${npx}\n${rest('npx')}`);
  const npm = `case "$1 \${2:-}" in\n  "run palestra") shift 3; exec palestra "$@" ;;\n  install*) ln -sfn ${root}/node_modules node_modules; exit ;;\nesac`;
  write(path.join(folder, 'npm'), `${npm}\n${rest('npm')}`);
  const venv = `if [ "\${1:-} \${2:-}" = "-m venv" ]; then mkdir -p "$3/bin"; cp ${folder}/python3 "$3/bin/python"; cp ${folder}/pip "$3/bin/pip"; exit; fi`;
  write(path.join(folder, 'python3'), `${venv}\nPYTHONPATH=${root}/integrations/python/src exec ${pythonProgram} "$@"`);
  write(path.join(folder, 'pip'), 'exit 0');
}

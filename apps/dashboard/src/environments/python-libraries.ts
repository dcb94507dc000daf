/** The Python libraries whose environments the catalogue offers, with some of their environments. */
export interface PythonLibrary {
  id: 'reasoning-gym' | 'textarena';
  about: string;
  /** What the library calls an environment. */
  noun: string;
  /** The first one is the example. */
  examples: readonly string[];
}

export const pythonLibraries: readonly PythonLibrary[] = [
  {
    id: 'reasoning-gym',
    about: 'Over 100 generators of questions about arithmetic, algorithms, logic, graphs and games. Each has its own rule for the score.',
    noun: 'Dataset',
    examples: [
      'leg_counting',
      'chain_sum',
      'basic_arithmetic',
      'countdown',
      'spell_backward',
      'letter_counting',
      'knights_knaves',
      'maze',
      'mini_sudoku',
      'n_queens',
      'shortest_path',
      'syllogism',
      'word_ladder',
      'zebra_puzzles',
    ],
  },
  {
    id: 'textarena',
    about: 'Over 90 text games for one or more players. In games of several players the policy plays every seat in turn.',
    noun: 'Game',
    examples: [
      'GuessTheNumber-v0',
      'Mastermind-v0',
      'Hangman-v0',
      'Minesweeper-v0',
      'FrozenLake-v0',
      'Sokoban-v0',
      'Sudoku-v0',
      'TowerOfHanoi-v0',
      'Blackjack-v0',
      'TicTacToe-v0',
      'ConnectFour-v0',
      'KuhnPoker-v0',
    ],
  },
];

/** A valid name of an environment from what a library calls it: at least three letters, digits, "-" or "_". */
export function nameOfLibraryId(id: string): string {
  const name = id
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 64);
  return name.length < 3 ? `${name || 'env'}-env` : name;
}

/** What a user runs on a machine that the service reaches. Text that a shell would read differently is refused by `null`. */
export function libraryCommands(library: PythonLibrary, id: string, origin: string): string | null {
  if (!/^[A-Za-z0-9][A-Za-z0-9._:-]{0,99}$/.test(id)) return null;
  return [
    `python3 -m pip install "palestra[${library.id}]"`,
    `export PALESTRA_URL=${origin} PALESTRA_API_KEY=…`,
    `npx palestra env push ${library.id}:${id} --name ${nameOfLibraryId(id)} --detach`,
  ].join('\n');
}

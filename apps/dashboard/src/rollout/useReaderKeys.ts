import { useKeys } from '../frame/keyboard.ts';

export interface ReaderCommands {
  turn: (step: 1 | -1) => void;
  mark: (step: 1 | -1) => void;
  sibling: (step: 1 | -1) => void;
  otherStep: (step: 1 | -1) => void;
  list: (step: 1 | -1) => void;
  ends: (end: 'first' | 'last') => void;
  diff: () => void;
  expand: () => void;
  expandAll: () => void;
  reasoning: () => void;
  tail: () => void;
  focusMode: () => void;
  copyLink: () => void;
  score: (score: number) => void;
  verdict: (verdict: 'good' | 'bad' | 'exploit') => void;
  find: () => void;
  print: () => void;
  back: () => void;
}

/** Binds the rollout keys of frame/keymap.ts. A guest has only the keys that read. */
export function useReaderKeys(commands: ReaderCommands, guest: boolean): void {
  useKeys({
    j: () => commands.turn(1),
    k: () => commands.turn(-1),
    J: () => commands.mark(1),
    K: () => commands.mark(-1),
    gg: () => commands.ends('first'),
    G: () => commands.ends('last'),
    e: commands.expand,
    E: commands.expandAll,
    r: commands.reasoning,
    t: commands.tail,
    f: commands.focusMode,
    'mod+p': commands.print,
    ...(guest ? {} : memberKeys(commands)),
  });
}

/** Commands that need an account: other rollouts, search, annotations. */
const memberKeys = (commands: ReaderCommands): Record<string, () => void> => ({
  '[': () => commands.sibling(-1),
  ']': () => commands.sibling(1),
  h: () => commands.sibling(-1),
  l: () => commands.sibling(1),
  '{': () => commands.otherStep(-1),
  '}': () => commands.otherStep(1),
  n: () => commands.list(1),
  p: () => commands.list(-1),
  g: () => commands.verdict('good'),
  b: () => commands.verdict('bad'),
  x: () => commands.verdict('exploit'),
  d: commands.diff,
  y: commands.copyLink,
  '/': commands.find,
  'mod+f': commands.find,
  Escape: commands.back,
  ...Object.fromEntries([1, 2, 3, 4, 5].map((score) => [String(score), () => commands.score(score)])),
});

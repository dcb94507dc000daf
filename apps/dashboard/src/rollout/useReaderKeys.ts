import { useEffect, useRef } from 'react';
import { useKeys } from '../frame/keyboard.ts';

const SECOND_G_MS = 300;

export interface ReaderCommands {
  turn: (step: 1 | -1) => void;
  mark: (step: 1 | -1) => void;
  sibling: (step: 1 | -1) => void;
  otherStep: (step: 1 | -1) => void;
  inQuery: (step: 1 | -1) => void;
  ends: (end: 'first' | 'last') => void;
  diff: () => void;
  expand: () => void;
  expandAll: () => void;
  reasoning: () => void;
  tail: () => void;
  focusMode: () => void;
  permalink: () => void;
  score: (score: number) => void;
  verdict: (verdict: 'good' | 'bad' | 'exploit') => void;
  find: () => void;
  back: () => void;
}

/** The keys of the rollout viewer (dashboard.md 6.2). `g` is a verdict only when no second one follows within 300 ms. */
export function useReaderKeys(commands: ReaderCommands): void {
  const latest = useRef(commands);
  const pendingG = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    latest.current = commands;
  });
  useEffect(() => () => clearTimeout(pendingG.current), []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.key.toLowerCase() !== 'f') return;
      if (document.querySelector('dialog[open]')) return;
      event.preventDefault();
      latest.current.find();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  useKeys({
    j: () => commands.turn(1),
    k: () => commands.turn(-1),
    J: () => commands.mark(1),
    K: () => commands.mark(-1),
    '[': () => commands.sibling(-1),
    ']': () => commands.sibling(1),
    h: () => commands.sibling(-1),
    l: () => commands.sibling(1),
    '{': () => commands.otherStep(-1),
    '}': () => commands.otherStep(1),
    n: () => commands.inQuery(1),
    p: () => commands.inQuery(-1),
    g: () => {
      clearTimeout(pendingG.current);
      pendingG.current = setTimeout(() => latest.current.verdict('good'), SECOND_G_MS);
    },
    gg: () => {
      clearTimeout(pendingG.current);
      commands.ends('first');
    },
    G: () => commands.ends('last'),
    b: () => commands.verdict('bad'),
    x: () => commands.verdict('exploit'),
    d: commands.diff,
    e: commands.expand,
    E: commands.expandAll,
    r: commands.reasoning,
    t: commands.tail,
    f: commands.focusMode,
    y: commands.permalink,
    '/': commands.find,
    Escape: commands.back,
    ...Object.fromEntries([1, 2, 3, 4, 5].map((score) => [String(score), () => commands.score(score)])),
  });
}

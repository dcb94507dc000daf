import type { RolloutOutline } from '@palestra/protocol';
import { type RefObject, useCallback, useEffect, useMemo, useState } from 'react';
import type { Openness } from './context.ts';
import { rowOfMessage, type TranscriptItem } from './transcript.ts';
import type { TranscriptHandle } from './Transcript.tsx';

const messageOfHash = (): number | null => {
  const match = /^#m-(\d+)$/.exec(location.hash);
  return match ? Number(match[1]) : null;
};

/** The selected row is the address's `#m-<index>`, so that a link always names what is read. */
export function useSelection(outline: RolloutOutline, items: readonly TranscriptItem[], transcript: RefObject<TranscriptHandle | null>) {
  const [message, setMessage] = useState(messageOfHash);
  const selected = useMemo(() => (message === null ? -1 : rowOfMessage(outline, items, message)), [outline, items, message]);
  const select = useCallback(
    (row: number) => {
      const item = items[row];
      if (!item) return;
      setMessage(item.anchor);
      history.replaceState(history.state, '', `#m-${item.anchor}`);
    },
    [items],
  );
  const go = useCallback(
    (row: number) => {
      select(row);
      transcript.current?.reveal(row);
    },
    [select, transcript],
  );
  useEffect(() => {
    const land = () => {
      const wanted = messageOfHash();
      setMessage(wanted);
      const row = wanted === null ? -1 : rowOfMessage(outline, items, wanted);
      if (row >= 0) transcript.current?.land(row);
    };
    addEventListener('hashchange', land);
    return () => removeEventListener('hashchange', land);
  }, [outline, items, transcript]);
  // Once, when the transcript is there: a link lands where it points.
  useEffect(() => {
    if (selected >= 0) transcript.current?.land(selected);
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  return { selected, message: selected >= 0 ? message : null, select, go };
}

/** Which rows are open: by hand, all of them, or all reasoning. */
export function useOpened() {
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const [all, setAll] = useState(false);
  const [reasoning, setReasoning] = useState(false);
  const toggle = useCallback((anchor: number) => {
    setOpened((before) => {
      const after = new Set(before);
      if (!after.delete(anchor)) after.add(anchor);
      return after;
    });
  }, []);
  const openness = useCallback(
    (item: TranscriptItem): Openness => {
      const byRule = all || (reasoning && item.kind === 'message' && item.type === 'reasoning');
      const byHand = opened.has(item.anchor);
      if (byRule) return byHand ? 'folded' : 'all';
      return byHand ? 'open' : 'folded';
    },
    [opened, all, reasoning],
  );
  const expandAll = useCallback(() => {
    setOpened(new Set());
    setAll((before) => !before);
  }, []);
  const flipReasoning = useCallback(() => setReasoning((before) => !before), []);
  return { openness, toggle, expandAll, flipReasoning, all, reasoning };
}

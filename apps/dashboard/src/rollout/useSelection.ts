import type { RolloutOutline } from '@palestra/protocol';
import { type RefObject, useCallback, useEffect, useMemo, useState } from 'react';
import type { Openness } from './context.ts';
import { rowOfMessage, type TranscriptItem } from './transcript.ts';
import type { TranscriptHandle } from './transcript/transcript-handle.ts';

const messageOfHash = (): number | null => {
  const match = /^#m-(\d+)$/.exec(location.hash);
  return match ? Number(match[1]) : null;
};

/** The selected row is `#m-<index>` of the address, so that the address is a link to it. */
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
    const followHash = () => {
      const linked = messageOfHash();
      setMessage(linked);
      const row = linked === null ? -1 : rowOfMessage(outline, items, linked);
      if (row >= 0) transcript.current?.scrollToTop(row);
    };
    addEventListener('hashchange', followHash);
    return () => removeEventListener('hashchange', followHash);
  }, [outline, items, transcript]);
  // Once, after the first render: scroll to the linked message.
  useEffect(() => {
    if (selected >= 0) transcript.current?.scrollToTop(selected);
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  return { selected, message: selected >= 0 ? message : null, select, go };
}

/** Which rows are open: those that the reader toggled, all rows, or all reasoning. */
export function useOpenRows() {
  const [toggledRows, setToggledRows] = useState<ReadonlySet<number>>(new Set());
  const [all, setAll] = useState(false);
  const [reasoning, setReasoning] = useState(false);
  const toggle = useCallback((anchor: number) => {
    setToggledRows((before) => {
      const after = new Set(before);
      if (!after.delete(anchor)) after.add(anchor);
      return after;
    });
  }, []);
  const openness = useCallback(
    (item: TranscriptItem): Openness => {
      const openByDefault = all || (reasoning && item.kind === 'message' && item.type === 'reasoning');
      const toggled = toggledRows.has(item.anchor);
      return toggled === openByDefault ? 'folded' : 'open';
    },
    [toggledRows, all, reasoning],
  );
  const expandAll = useCallback(() => {
    setToggledRows(new Set());
    setAll((before) => !before);
  }, []);
  const toggleReasoning = useCallback(() => setReasoning((before) => !before), []);
  return { openness, toggle, expandAll, toggleReasoning };
}

import type { RolloutHeader, RolloutOutline } from '@palestra/protocol';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { findQuery, relatedInterval } from '../data/rollout.ts';
import { rowsByIndex, type TranscriptItem } from './transcript.ts';

const TYPING_MS = 200;
/** Hits that are loaded at once. Later pages load when the reader reaches them. */
const PRELOADED_HITS = 500;

export interface Find {
  /** The searched text. It follows the input with a delay. */
  text: string;
  /** Rows with a hit, ascending. */
  rows: readonly number[];
  /** There are hits after the last row. */
  more: boolean;
  busy: boolean;
  error: Error | null;
}

/** Finds a text in all messages of the rollout; the server searches. */
export function useFind(header: RolloutHeader, typed: string, outline: RolloutOutline, items: readonly TranscriptItem[]): Find {
  const { id, run } = header;
  const growing = relatedInterval(header) !== false;
  const [text, setText] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setText(typed.trim().slice(0, 120)), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const found = useInfiniteQuery({ ...findQuery(run.id, id, text, { total: outline.total, growing }), enabled: text !== '' });
  const { data, hasNextPage, isFetching, fetchNextPage, isError } = found;
  const hits = useMemo(() => data?.pages.flatMap((page) => page.hits) ?? [], [data]);
  useEffect(() => {
    // A page that failed is not asked for without end.
    if (hasNextPage && !isFetching && !isError && hits.length < PRELOADED_HITS) void fetchNextPage();
  }, [hasNextPage, isFetching, isError, hits.length, fetchNextPage]);
  const rows = useMemo(() => {
    if (hits.length === 0) return [];
    const byIndex = rowsByIndex(outline, items);
    return [...new Set(hits.flatMap(({ index }) => byIndex.get(index) ?? []))].toSorted((a, b) => a - b);
  }, [hits, outline, items]);
  return { text, rows, more: hasNextPage, busy: isFetching || text !== typed.trim().slice(0, 120), error: found.error };
}

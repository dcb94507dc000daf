import { useEffect, useRef, useState } from 'react';
import { annotateAll, type BulkLabel, type BulkProgress } from '../data/selection.ts';
import { type Chosen, countOf } from './selection.ts';

export interface Bulk {
  label: BulkLabel;
  total: number;
  progress: BulkProgress | null;
  state: 'running' | 'stopped' | 'done';
  error: Error | null;
}

/** Annotates the selection page by page, and can stop and continue. A new selection forgets the last outcome. */
export function useBulk(run: string, chosen: Chosen | null) {
  const [bulk, setBulk] = useState<(Bulk & { of: Chosen }) | null>(null);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);

  const work = async (of: Chosen, label: BulkLabel, from: BulkProgress | null) => {
    const controller = new AbortController();
    running.current?.abort();
    running.current = controller;
    const target = of.kind === 'rollouts' ? { rollouts: of.ids } : { query: of.q, as_of: of.asOf };
    const change = (part: Partial<Bulk>) => setBulk((old) => old && { ...old, ...part });
    setBulk({ of, label, total: countOf(of), progress: from, state: 'running', error: null });
    try {
      await annotateAll(run, label, target, from, (progress) => change({ progress }), controller.signal);
      change({ state: controller.signal.aborted ? 'stopped' : 'done' });
    } catch (error) {
      change({ state: 'stopped', error: controller.signal.aborted ? null : (error as Error) });
    }
  };
  const shown = bulk?.of === chosen || bulk?.state === 'running' ? bulk : null;
  return {
    bulk: shown as Bulk | null,
    start: (label: BulkLabel) => chosen && void work(chosen, label, null),
    stop: () => running.current?.abort(),
    resume: () => bulk && void work(bulk.of, bulk.label, bulk.progress),
  };
}

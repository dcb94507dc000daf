import type { Annotation, RolloutHeader, RolloutOutline } from '@palestra/protocol';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { annotationsQuery } from '../data/annotations.ts';
import { groupAroundQuery } from '../data/groups.ts';
import { runQuery } from '../data/queries.ts';
import { callsQuery } from '../data/rollout.ts';
import { buildTranscript, decisiveRow, markedRow, rowOfMessage, withDurations } from './transcript.ts';
import { useSolved } from './useSolved.ts';

const NO_ANNOTATIONS: readonly Annotation[] = [];

/** The confidence of an inferred step; null for other steps. */
function useStepConfidence({ provenance, run }: RolloutHeader): number | null {
  const inferred = provenance['step'] === 'inferred';
  const inference = useQuery({ ...runQuery(run.name), enabled: inferred }).data?.inference;
  return typeof inference?.['confidence'] === 'number' ? inference['confidence'] : null;
}

/** What the page of a rollout shows: data of the server, and rows derived from it. */
export function useReaderData(header: RolloutHeader, uploadedOutline: RolloutOutline) {
  const calls = useQuery(callsQuery(header)).data;
  const group = useQuery(groupAroundQuery(header)).data;
  const annotations = useQuery(annotationsQuery(header.id)).data ?? NO_ANNOTATIONS;
  const confidence = useStepConfidence(header);
  const solved = useSolved(header.run.id, header.environment);
  const outline = useMemo(() => withDurations(uploadedOutline, calls?.calls ?? []), [uploadedOutline, calls]);
  const items = useMemo(() => buildTranscript(outline), [outline]);
  const { failure, reward } = header;
  const largest = useMemo(() => decisiveRow(outline, items), [outline, items]);
  const hasFailed = failure !== null && (reward === null || !solved(reward));
  const decisive = useMemo(() => markedRow(outline, items, hasFailed), [outline, items, hasFailed]);
  const failedRow = useMemo(() => (failure?.index == null ? -1 : rowOfMessage(outline, items, failure.index)), [outline, items, failure]);
  const failures = useMemo(() => {
    const classes = new Map(
      (calls?.calls ?? []).flatMap(({ index, failure_class }) => (failure_class === null ? [] : [[index, failure_class]])),
    );
    // Uploads without a session in the ledger.
    const failed = failure?.kind === 'call' ? items[failedRow] : undefined;
    if (failure && failed && !classes.has(failed.anchor)) classes.set(failed.anchor, failure.class);
    return classes;
  }, [calls, failure, failedRow, items]);
  return { calls, group, annotations, confidence, solved, outline, items, largest, decisive, failedRow, failures };
}

export type ReaderData = ReturnType<typeof useReaderData>;

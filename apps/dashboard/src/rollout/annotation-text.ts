import type { Annotation } from '@palestra/protocol';

/** An annotation of a longer range is shown at this many messages. */
const MAX_ANNOTATED_MESSAGES = 1_000;

const scoreText = (score: number): string => `${score} of 5`;
const textOf = ({ verdict, score, tag, note }: Annotation): string => verdict ?? (score === null ? (tag ?? note ?? '') : scoreText(score));

/** The text of the newest annotation of each message, by message index. `annotations`: newest first. */
export function annotationTexts(annotations: readonly Annotation[]): ReadonlyMap<number, string> {
  const texts = new Map<number, string>();
  for (const annotation of annotations.toReversed()) {
    const { from_index: from, to_index: to } = annotation;
    if (from === null) continue;
    const last = Math.min(to ?? from, from + MAX_ANNOTATED_MESSAGES);
    for (let index = from; index <= last; index += 1) texts.set(index, textOf(annotation));
  }
  return texts;
}

/** The newest verdict and the newest score in one text; null without any. */
export function assessmentOf(annotations: readonly Annotation[]): string | null {
  const verdict = annotations.find((annotation) => annotation.verdict !== null)?.verdict;
  const score = annotations.find((annotation) => annotation.score !== null)?.score;
  return [verdict, score && scoreText(score)].filter(Boolean).join(', ') || null;
}

import type { ReviewQueue } from '@palestra/protocol';

export interface Choice {
  /** As answers have it. */
  choice: string;
  /** As reviewers read it. */
  text: string;
  /** Name of the key (frame/keymap.ts). */
  key: string;
  /** On the button. */
  keyText: string;
}

const PAIR: readonly Choice[] = [
  { choice: 'a', text: 'Left is better', key: 'ArrowLeft', keyText: '←' },
  { choice: 'tie', text: 'Equally good', key: '=', keyText: '=' },
  { choice: 'b', text: 'Right is better', key: 'ArrowRight', keyText: '→' },
];

/** The choices of a queue in the order of their keys. */
export const choicesOf = ({ mode, labels }: Pick<ReviewQueue, 'mode' | 'labels'>): readonly Choice[] =>
  mode === 'pairs' ? PAIR : labels.map((text, at) => ({ choice: text, text, key: String(at + 1), keyText: String(at + 1) }));

export const textOfChoice = (queue: Pick<ReviewQueue, 'mode' | 'labels'>, choice: string): string =>
  choicesOf(queue).find((each) => each.choice === choice)?.text ?? choice;

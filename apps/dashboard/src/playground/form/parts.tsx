import type { ReactNode } from 'react';
import type { Draft } from './draft.ts';
import type { Field } from './field.ts';
import type { Problem } from './read.ts';

/** What every part of a generated form is made from. Controlled: the caller holds the draft. */
export interface Editing {
  field: Field;
  draft: Draft;
  path: string;
  problems: readonly Problem[];
  /** Prefix of the ids of this form's controls. */
  form: string;
  onChange: (draft: Draft) => void;
}

export const messageAt = (problems: readonly Problem[], path: string): string | undefined =>
  problems.find((one) => one.path === path)?.message;
export const controlId = (form: string, path: string): string => `${form}-${path}`;

/** What is wrong, beside the control that it is about. */
export function Message({ text, id }: { text: string | undefined; id: string }) {
  if (text === undefined) return null;
  return (
    <p id={id} className="mt-[2px] text-[12px] leading-[16px] text-bad">
      <span aria-hidden="true">✕ </span>
      {text}
    </p>
  );
}

/** `label`: its whole name, where a field's label would else be taken for it. */
export const Add = ({ id, label, onClick, children }: { id?: string; label?: string; onClick: () => void; children: ReactNode }) => (
  <button type="button" id={id} aria-label={label} className="button self-start" onClick={onClick}>
    + {children}
  </button>
);
export const Remove = ({ label, onClick }: { label: string; onClick: () => void }) => (
  <button type="button" className="link text-[12px]" aria-label={label} onClick={onClick}>
    remove
  </button>
);

import type { ReactNode } from 'react';
import type { Draft } from './draft.ts';
import type { Field } from './field.ts';
import type { Problem } from './read.ts';

/** Props of every control of a generated form. Controlled: the caller has the draft. */
export interface ControlProps {
  field: Field;
  draft: Draft;
  path: string;
  problems: readonly Problem[];
  /** Prefix of the ids of the controls. */
  form: string;
  onChange: (draft: Draft) => void;
}

export const messageAt = (problems: readonly Problem[], path: string): string | undefined =>
  problems.find((problem) => problem.path === path)?.message;
export const controlId = (form: string, path: string): string => `${form}-${path}`;

/** The problem of a control. */
export function Message({ text, id }: { text: string | undefined; id: string }) {
  if (text === undefined) return null;
  return (
    <p id={id} className="mt-[2px] text-[12px] leading-[16px] text-bad">
      <span aria-hidden="true">✕ </span>
      {text}
    </p>
  );
}

/** `label`: the accessible name. Without it, a label of the field would be the name. */
export const Add = ({ id, label, onClick, children }: { id?: string; label?: string; onClick: () => void; children: ReactNode }) => (
  <button type="button" id={id} aria-label={label} className="button self-start" onClick={onClick}>
    + {children}
  </button>
);
export const Remove = ({ label, onClick }: { label: string; onClick: () => void }) => (
  <button type="button" className="link text-[12px]" aria-label={label} onClick={onClick}>
    Remove
  </button>
);

import { lazy, Suspense, useState } from 'react';
import { type FormState, newForm } from './form-state.ts';

const AlertDialog = lazy(() => import('./AlertDialog.tsx').then((module) => ({ default: module.AlertDialog })));

interface Props {
  /** Name of the run that the reader looks at. */
  run: string;
  preset: Partial<FormState>;
  className?: string;
  text?: string;
  /** Name of the button: what the alert is on. */
  label: string;
}

/** Creates an alert on what the reader looks at. */
export function AlertMe({ run, preset, className = 'label link', text = 'alert', label }: Props) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className={className} onClick={() => setOpen(true)}>
        {text}
        <span className="sr-only"> {label}</span>
      </button>
      {open && (
        <Suspense>
          <AlertDialog initial={newForm({ runs: run, ...preset })} run={run} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}

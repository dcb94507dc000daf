import { lazy, Suspense, useState } from 'react';
import { type FormState, newForm } from './form-state.ts';

const AlertDialog = lazy(() => import('./AlertDialog.tsx').then((module) => ({ default: module.AlertDialog })));

/** Creates an alert on what the reader looks at. `run`: its name. */
export function AlertMe({
  run,
  preset,
  className = 'label link',
  label,
}: {
  run: string;
  preset: Partial<FormState>;
  className?: string;
  label: string;
}) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className={className} aria-label={label} onClick={() => setOpen(true)}>
        alert
      </button>
      {open && (
        <Suspense>
          <AlertDialog initial={newForm({ runs: run, ...preset })} run={run} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}

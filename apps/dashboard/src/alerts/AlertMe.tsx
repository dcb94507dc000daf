import { lazy, Suspense, useState } from 'react';
import { useGuest } from '../frame/guest.ts';
import { type FormState, newForm } from './form-state.ts';

const AlertDialog = lazy(() => import('./AlertDialog.tsx').then((module) => ({ default: module.AlertDialog })));

interface Props {
  /** Name of the run that the reader looks at. */
  run: string;
  preset: Partial<FormState>;
  className?: string;
  /** The rest of the name of the button: a chart or a query. */
  on: string;
}

/** Creates an alert on what the reader looks at. Guests cannot. */
export function AlertMe({ run, preset, className = 'label link', on }: Props) {
  const [open, setOpen] = useState(false);
  if (useGuest()) return null;
  return (
    <>
      <button type="button" className={className} onClick={() => setOpen(true)}>
        Alert<span className="sr-only"> on {on}</span>
      </button>
      {open && (
        <Suspense>
          <AlertDialog initial={newForm({ runs: run, ...preset })} run={run} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}

import { Dialog } from '../frame/Dialog.tsx';
import { AlertForm } from './AlertForm.tsx';
import type { FormState } from './form-state.ts';

/** A dialog that creates an alert, or changes the one with `id`. */
export function AlertDialog({
  id = null,
  initial,
  run,
  onClose,
}: {
  id?: string | null;
  initial: FormState;
  run?: string;
  onClose: () => void;
}) {
  return (
    <Dialog title={id === null ? 'New alert' : `Edit ${initial.name}`} open onClose={onClose} width={780}>
      <AlertForm id={id} initial={initial} onDone={onClose} {...(run !== undefined && { run })} />
    </Dialog>
  );
}

import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Dialog } from './Dialog.tsx';

/** Asks before a destructive action; `children` describe it. Stays open and shows the error if the server refuses. */
export function ConfirmDialog({
  title,
  action,
  onConfirm,
  onClose,
  children,
}: {
  title: string;
  /** Label of the button: verb and object. */
  action: string;
  onConfirm: () => Promise<unknown>;
  onClose: () => void;
  children: ReactNode;
}) {
  const confirm = useMutation({ mutationFn: onConfirm, onSuccess: onClose });
  return (
    <Dialog title={title} open onClose={onClose}>
      <div className="flex flex-col gap-3">
        {children}
        <div className="flex items-center gap-2">
          <button type="button" className="button strong text-bad" disabled={confirm.isPending} onClick={() => confirm.mutate()}>
            {action}
          </button>
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
        </div>
        <p role="alert" className="text-bad empty:hidden">
          {confirm.error?.message}
        </p>
      </div>
    </Dialog>
  );
}

import { type ReactNode, useEffect, useRef } from 'react';

/** A modal `<dialog>`: the browser handles focus, Escape and the background. Every way to close it calls `onClose`. */
export function Dialog({
  title,
  open,
  onClose,
  width = 480,
  children,
}: {
  title: string;
  open: boolean;
  onClose: () => void;
  width?: number;
  children: ReactNode;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  /** The last press of the pointer was on the background. */
  const isOutside = useRef(false);
  useEffect(() => {
    const element = dialog.current!;
    if (open && !element.open) {
      element.showModal();
      // React's autoFocus runs before the dialog is open and has no effect then.
      element.querySelector<HTMLElement>('[data-autofocus]')?.focus();
    }
    if (!open && element.open) element.close();
  }, [open]);
  return (
    <dialog
      ref={dialog}
      aria-label={title}
      onClose={onClose}
      // A drag that begins in the dialog, for example to select a text, may end outside of it.
      onPointerDown={(event) => {
        const { left, right, top, bottom } = event.currentTarget.getBoundingClientRect();
        const { clientX: x, clientY: y } = event;
        isOutside.current = event.target === event.currentTarget && (x < left || x > right || y < top || y > bottom);
      }}
      onClick={(event) => event.target === dialog.current && isOutside.current && dialog.current.close()}
      className="m-auto max-h-[86vh] max-w-[94vw] overflow-y-auto rounded-[4px] border border-line-strong bg-paper-0 p-4 text-ink-1 shadow-xl backdrop:bg-[var(--backdrop)]"
      style={{ width }}
    >
      {open && (
        <>
          <div className="mb-3 flex items-center gap-2">
            <h2 className="min-w-0 flex-1 truncate text-[15px] leading-[20px] strong">{title}</h2>
            <button type="button" className="button" onClick={() => dialog.current?.close()}>
              Close
            </button>
          </div>
          {children}
        </>
      )}
    </dialog>
  );
}

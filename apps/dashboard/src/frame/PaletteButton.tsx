import { lazy, Suspense, useState } from 'react';
import { Dialog } from './Dialog.tsx';
import { useKeys } from './keyboard.ts';

const PaletteDialog = lazy(async () => ({ default: (await import('../palette/PaletteDialog.tsx')).PaletteDialog }));

/** Opens the palette; its code comes with the first opening. */
export function PaletteButton() {
  const [open, setOpen] = useState(false);
  useKeys({ 'mod+k': () => setOpen(true) });
  const close = () => setOpen(false);
  return (
    <>
      <button
        type="button"
        className="mx-0 mb-2 flex h-[28px] flex-none items-center whitespace-nowrap max-[760px]:mb-0 gap-2 rounded-[4px] border border-line px-2 text-ink-3 hover:bg-paper-2 hover:text-ink-1"
        onClick={() => setOpen(true)}
        aria-keyshortcuts="Control+K Meta+K"
      >
        <span className="flex-1 text-left">Go to</span>
        <kbd>Ctrl K</kbd>
      </button>
      <Dialog title="Go to" open={open} onClose={close} width={560}>
        <Suspense fallback={<p className="h-[34px]" />}>
          <PaletteDialog close={close} />
        </Suspense>
      </Dialog>
    </>
  );
}

import { lazy, Suspense, useState } from 'react';
import { Dialog } from './Dialog.tsx';
import { useKeys } from './keyboard.ts';

const PaletteDialog = lazy(async () => ({ default: (await import('../palette/PaletteDialog.tsx')).PaletteDialog }));

/** Opens the palette. Its code loads when it first opens; an input takes the text until then. */
export function PaletteButton() {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState('');
  const show = () => {
    setText('');
    setOpen(true);
  };
  useKeys({ 'mod+k': show });
  const close = () => setOpen(false);
  return (
    <>
      <button
        type="button"
        className="mx-0 mb-2 flex h-[28px] flex-none items-center whitespace-nowrap max-[760px]:mb-0 gap-2 rounded-[4px] border border-line px-[6px] text-ink-3 hover:bg-paper-2 hover:text-ink-1"
        onClick={show}
        aria-keyshortcuts="Control+K Meta+K"
      >
        <svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true" className="-mx-px flex-none">
          <path d="M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9zM10.5 10.5l3 3" fill="none" stroke="currentColor" strokeWidth="1.3" />
        </svg>
        <span className="rail-words flex-1 text-left">Go to</span>
        <kbd className="rail-words">Ctrl K</kbd>
      </button>
      <Dialog title="Go to" open={open} onClose={close} width={560}>
        <Suspense
          fallback={
            <input
              data-autofocus
              aria-label="Go to"
              className="input mb-2 h-[34px] w-full"
              value={text}
              onChange={(event) => setText(event.target.value)}
            />
          }
        >
          <PaletteDialog {...{ text, setText, close }} />
        </Suspense>
      </Dialog>
    </>
  );
}

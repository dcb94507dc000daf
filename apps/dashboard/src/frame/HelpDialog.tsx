import { type KeyboardEvent, useCallback, useEffect, useState } from 'react';
import { Dialog } from './Dialog.tsx';
import { nameOf, useKeys } from './keyboard.ts';
import { KEY_GROUPS, keyOf, remapKey, useKeymap } from './keymap.ts';

const symbols: Record<string, string> = { mod: navigator.platform.startsWith('Mac') ? '⌘' : 'Ctrl', ' ': 'Space' };
const parts = (key: string) =>
  (key === 'gg' ? ['g', 'g'] : key.startsWith('mod+') ? ['mod', key.slice(4)] : [key]).map((part) => symbols[part] ?? part);

function KeyRow({ command, description, fixed = false }: { command: string; description: string; fixed?: boolean }) {
  const [recording, setRecording] = useState(false);
  const onKeyDown = (event: KeyboardEvent) => {
    event.preventDefault();
    event.stopPropagation();
    if (['Shift', 'Control', 'Meta', 'Alt', 'AltGraph', 'CapsLock', 'Dead'].includes(event.key)) return;
    const key = nameOf(event);
    if (key !== null && key !== 'Escape' && key !== 'Tab') remapKey(command, key === 'Backspace' ? null : key);
    setRecording(false);
  };
  if (fixed)
    return (
      <div className="grid h-[26px] grid-cols-[92px_1fr] items-center">
        <span className="px-1">
          <kbd>{command}</kbd>
        </span>
        <span className="truncate">{description}</span>
      </div>
    );
  return (
    <div className="grid h-[26px] grid-cols-[92px_1fr] items-center">
      <button
        type="button"
        className="flex h-[24px] items-center gap-1 rounded-[3px] px-1 text-left hover:bg-paper-2"
        aria-label={`Key for “${description}”: ${recording ? 'press a key' : `${parts(keyOf(command)).join(' ')}. Press to change it.`}`}
        onClick={() => setRecording(true)}
        onKeyDown={recording ? onKeyDown : undefined}
        onBlur={() => setRecording(false)}
      >
        {recording ? (
          <span className="label">Press a key</span>
        ) : (
          parts(keyOf(command)).map((part, i) => [i > 0 && ' ', <kbd key={i}>{part}</kbd>])
        )}
      </button>
      <span className="truncate">{description}</span>
    </div>
  );
}

const openers = new Set<() => void>();
/** Opens the keyboard map. */
export const openHelp = (): void => openers.forEach((open) => open());

/** The keyboard map. To change a key, press its button and then the new key; Backspace resets it. */
export function HelpDialog() {
  const [open, setOpen] = useState(false);
  useKeymap();
  const show = useCallback(() => setOpen(true), []);
  useKeys({ '?': show });
  useEffect(() => {
    openers.add(show);
    return () => void openers.delete(show);
  }, [show]);
  return (
    <>
      <button
        type="button"
        onClick={() => setOpen(true)}
        className="grid size-[28px] place-items-center rounded-[4px] hover:bg-paper-2 max-[560px]:hidden"
        aria-label="Keyboard shortcuts"
        aria-keyshortcuts="?"
      >
        <kbd>?</kbd>
      </button>
      <Dialog title="Keyboard shortcuts" open={open} onClose={() => setOpen(false)} width={720}>
        <div className="columns-2 gap-6 max-[560px]:columns-1">
          {KEY_GROUPS.map(({ title, keys }) => (
            <section key={title} className="mb-3 break-inside-avoid-column">
              <h3 className="label mb-1">{title}</h3>
              {keys.map(({ key, description, fixed }) => (
                <KeyRow key={key} command={key} description={description} {...(fixed && { fixed })} />
              ))}
            </section>
          ))}
        </div>
        <p className="label mt-2">
          To change a key, choose it and press the new key. Backspace resets it. The change applies to this browser only.
        </p>
        <p className="mt-2">
          <a href="/docs/" className="text-accent hover:underline">
            Documentation
          </a>
        </p>
      </Dialog>
    </>
  );
}
